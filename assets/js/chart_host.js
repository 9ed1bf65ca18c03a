// A plotly figure, redrawn in place; its colours are custom properties, read again when the theme changes.
decodescope.views.chart_host = (root, send, options) => {
  const { make, attribute, scrolls, edged, onTheme } = decodescope;
  const plot = make("div", "plot");
  plot.setAttribute("role", "img");
  const settle = scrolls(plot, plot, () => false);
  const fold = make("details", "numbers");
  const heading = make("summary");
  const numbers = make("div");
  fold.append(heading, numbers);
  root.replaceChildren(edged(plot), fold);
  const table = decodescope.table(numbers, ({ key }) => send({ x: null, y: null, key }), options.label, 320);
  let drawn = "";
  let figure = null;
  let seen = null; // the figure that is drawn, which may be an older one
  let least = 0;
  let waiting = false;
  let listening = false;

  const config = { displayModeBar: false, displaylogo: false, doubleClick: "reset", scrollZoom: false };

  async function draw() {
    waiting = false;
    if (!figure || !plot.clientWidth) return; // in a hidden panel: drawn when it gets a width
    const Plotly = await decodescope.loadPlotly();
    seen = figure;
    const { data, layout } = dress(seen, plot);
    layout.width = Math.max(plot.clientWidth, least);
    layout.uirevision ??= "keep";
    await Plotly.react(plot, data, layout, config);
    settle();
    if (listening) return;
    listening = true;
    plot.on("plotly_click", ({ points: [point] }) => {
      const trace = seen.data[point.curveNumber];
      const key = Array.isArray(trace.customdata) ? trace.customdata[point.pointNumber] : point.customdata;
      send({ x: plain(point.x), y: plain(point.y), key: key ?? null });
    });
  }

  // Once drawn, a chart that is out of sight keeps its picture until it is scrolled to.
  let inSight = false;
  let stale = false;
  new IntersectionObserver(
    ([entry]) => {
      inSight = entry.isIntersecting;
      if (inSight && stale) later();
    },
    { rootMargin: "200px" },
  ).observe(plot);

  function later() {
    stale = listening && !inSight;
    if (waiting || stale) return;
    waiting = true;
    attribute(plot, "aria-busy", "true"); // it may show something older yet
    decodescope.charts.take(() => draw().catch(failed).finally(drawnAll));
  }

  function drawnAll() {
    attribute(plot, "aria-busy", waiting ? "true" : null);
  }

  function join(text) {
    return JSON.parse(text).flatMap(({ shared, marks }) => marks.map((mark) => ({ ...shared, ...mark })));
  }

  function failed(error) {
    console.error("chart not drawn:", error);
    drawn = ""; // the next value is drawn, also where it is the same
    fold.open = true;
  }

  const plain = (value) => (value === undefined ? null : value);
  let width = 0;
  new ResizeObserver(() => {
    if (plot.clientWidth !== width) later();
    width = plot.clientWidth;
  }).observe(plot);
  onTheme(plot, later);

  return {
    rename: table.rename,
    update(value) {
      plot.style.height = `${value.height}px`;
      attribute(plot, "aria-label", value.label);
      fold.hidden = !value.numbers;
      if (value.numbers) {
        heading.textContent = value.title;
        table.update(value.numbers);
      }
      least = value.width;
      const layout = Object.entries(value.layout);
      const text = [value.traces, value.annotations, ...layout.flat()].join();
      if (text === drawn) return;
      drawn = text;
      figure = { data: join(value.traces), layout: Object.fromEntries(layout.map(([key, part]) => [key, JSON.parse(part)])) };
      figure.layout.annotations = join(value.annotations);
      plot.classList.toggle("pick", figure.data.some((trace) => trace.customdata));
      later();
    },
  };

  // A copy of the figure as plotly wants it: colours of the theme, and texts that plotly cannot take for markup.
  function dress(source, node) {
    const style = getComputedStyle(node);
    const texts = new Set(["text", "hovertext", "name", "ticktext", "tickvals", "categoryarray", "labels", "x", "y", "customdata"]);
    const visit = (value, isText) => {
      if (typeof value === "string") {
        if (isText) return value.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\n/g, "<br>");
        const name = /^var\((--[\w-]+)\)$/.exec(value);
        return name ? style.getPropertyValue(name[1]).trim() || "#888" : value;
      }
      if (Array.isArray(value)) return value.map((entry) => visit(entry, isText));
      if (!value || typeof value !== "object") return value;
      return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, visit(entry, isText || texts.has(key))]));
    };
    return visit(source, false);
  }
};

// Charts are drawn one at a time. While tokens come in, each then leaves the browser six times the time it took: a chart that
// falls behind skips to its newest figure, and the tokens do not wait for it.
decodescope.charts = (() => {
  const queue = [];
  let busy = false;
  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const running = () => document.getElementById("stop")?.disabled === false;
  async function work() {
    busy = true;
    while (queue.length) {
      await new Promise(requestAnimationFrame);
      const started = performance.now();
      await queue.shift()();
      if (running()) await pause(Math.min(6 * (performance.now() - started), 400));
    }
    busy = false;
  }
  return {
    take(draw) {
      queue.push(draw);
      if (!busy) work();
    },
  };
})();

// plotly.min.js from this server, once, when the first chart is drawn.
decodescope.loadPlotly = () => {
  decodescope.plotlyLoaded ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(decodescope.plotly, document.baseURI).href;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      decodescope.plotlyLoaded = null; // the next chart asks again
      reject(new Error(`no answer for ${script.src}`));
    };
    document.head.append(script);
  });
  return decodescope.plotlyLoaded;
};
