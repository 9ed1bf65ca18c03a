// The data of a recorded page: a deflated JSON value, whose texts stand in pieces that many values share.
decodescope.record = (() => {
  // Two of 91 printable signs hold 13 bits: all from "!" to "~" but <, & and the backslash.
  const code = new Uint8Array(128);
  const signs = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).filter((sign) => !"<&\\".includes(sign));
  signs.forEach((sign, number) => (code[sign.charCodeAt(0)] = number));

  function bytes({ textContent: text, dataset }) {
    const found = new Uint8Array(Number(dataset.size));
    let held = 0;
    let bits = 0;
    let at = 0;
    for (let index = 0; index < text.length; index += 2) {
      held = (held << 13) | (91 * code[text.charCodeAt(index)] + code[text.charCodeAt(index + 1)]);
      bits += 13;
      while (bits >= 8) {
        bits -= 8;
        found[at++] = held >> bits;
      }
      held &= (1 << bits) - 1;
    }
    return found;
  }

  // The text that was packed into the element.
  async function inflate(id) {
    const stream = new Blob([bytes(document.getElementById(id))]).stream().pipeThrough(new DecompressionStream("deflate"));
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
