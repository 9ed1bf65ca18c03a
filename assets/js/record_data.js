// The data of a recorded page: base64 of a deflated JSON value, whose texts stand in pieces that many values share.
decodescope.record = (() => {
  const bytes = (id) => Uint8Array.from(atob(document.getElementById(id).textContent), (char) => char.charCodeAt(0));

  // The text that was packed into the element.
  async function inflate(id) {
    const stream = new Blob([bytes(id)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  }

  // Of each widget: its value at a place and head, unpacked when it is first shown.
  function reader({ widgets, pieces }) {
    const unpack = (value) => {
      if (Array.isArray(value)) return value.map(unpack);
      if (!value || typeof value !== "object") return value;
      if (value.$) return value.$.map((number) => pieces[number]).join("");
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, unpack(part)]));
    };
    const known = new Map();
    return (name, index) => {
      const widget = widgets[name];
      if (!widget) return null;
      const number = widget.at[index];
      const key = `${name} ${number}`;
      if (!known.has(key)) known.set(key, unpack(widget.values[number]));
      return known.get(key);
    };
  }

  return { inflate, reader };
})();

// Plotly lies in this file too. The page's policy allows it by its hash; the first chart unpacks it.
decodescope.loadPlotly = () => {
  decodescope.plotlyLoaded ??= decodescope.record.inflate("plotly").then((text) => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
    return window.Plotly;
  });
  return decodescope.plotlyLoaded;
};
