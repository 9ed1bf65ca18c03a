// A matrix of 8-bit values as a picture in the theme's ramp, with sparse axis labels and a read-out of one cell.
decodescope.views.heatmap = (root, send) => {
  const { make, attribute, unpack, room, edged, onTheme } = decodescope;
  const MARK = 3; // pixels that the mark of the chosen cell stands out, as in the style sheet
  const frame = make("div", "heat");
  const scroll = make("div", "heat-scroll");
  const canvas = make("canvas", "heat-cells");
  const marks = make("div", "heat-marks");
  const bands = make("div", "heat-bands");
  const lettering = make("div", "heat-texts");
  const over = make("div", "heat-over");
  const chosen = make("div", "heat-chosen");
  const xs = make("div", "heat-x");
  const ys = make("div", "heat-y");
  const foot = make("div", "heat-foot");
  const readout = make("output", "heat-read");
  const scale = make("canvas", "heat-scale");
  const [lowest, highest] = [make("span"), make("span")];
  const legend = make("div", "heat-legend");
  const pad = decodescope.pad(go, () => choose(standing()));
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application"); // the arrow keys belong to it
  attribute(readout, "aria-live", "off");
  attribute(canvas, "aria-keyshortcuts", "ArrowLeft ArrowUp ArrowDown ArrowRight Enter");
  frame.addEventListener("focusin", () => attribute(readout, "aria-live", "polite"));
  frame.addEventListener("focusout", () => attribute(readout, "aria-live", "off"));
  marks.append(canvas, bands, lettering, over, chosen);
  scroll.append(ys, marks, xs);
  legend.append(lowest, scale, highest);
  foot.append(readout, pad.box, legend);
  const edge = edged(scroll);
  frame.append(edge, foot);
  root.replaceChildren(frame);
  scale.width = 128;
  scale.height = 1;
  let now = null; // the value in sight
  let grey = null; // Uint8Array [rows * columns], 0 where there is no value
  let picture = "";
  let size = [1, 1]; // pixels a column, a row
  let at = null; // [row, column] under the pointer, the keys or the pad
  let hovered = false; // it is the pointer's

  function ramp() {
    const style = getComputedStyle(frame);
    const stops = [0, 1, 2, 3, 4].map((stop) => {
      const hex = style.getPropertyValue(`--heat-${stop}`).trim().slice(1);
      return [0, 2, 4].map((from) => Number.parseInt(hex.slice(from, from + 2), 16));
    });
    return Array.from({ length: 255 }, (_, level) => {
      const place = (level / 254) * 4;
      const left = Math.min(Math.floor(place), 3);
      return stops[left].map((channel, index) => channel + (stops[left + 1][index] - channel) * (place - left));
    });
  }

  function paint() {
    if (!grey) return;
    const colours = ramp();
    fillImage(canvas, now.columns, now.rows, (index) => grey[index] && colours[grey[index] - 1]);
    fillImage(scale, 128, 1, (index) => colours[2 * index]);
    for (const [index, cell] of [...lettering.children].entries()) {
      cell.classList.toggle("on-dark", Boolean(grey[index]) && luminance(colours[grey[index] - 1]) < 0.18);
      cell.classList.toggle("on-light", Boolean(grey[index]) && luminance(colours[grey[index] - 1]) >= 0.18);
    }
  }

  function luminance(rgb) {
    const [red, green, blue] = rgb.map((channel) => (channel / 255) ** 2.2);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  // The first line of each cell's text, in the order of the rows.
  function letter() {
    const cells = (now.texts || []).flat();
    lettering.hidden = !cells.length;
    if (lettering.children.length !== cells.length) lettering.replaceChildren(...cells.map(() => make("span")));
    cells.forEach((text, index) => (lettering.children[index].textContent = text.split("\n", 1)[0]));
  }

  function fillImage(target, width, height, colour) {
    target.width = width;
    target.height = height;
    const context = target.getContext("2d");
    const image = context.createImageData(width, height);
    for (let index = 0; index < width * height; index++) {
      const rgb = colour(index);
      if (rgb) image.data.set([rgb[0], rgb[1], rgb[2], 255], 4 * index);
    }
    context.putImageData(image, 0, 0);
  }

  async function decode(source, rows, columns) {
    const image = new Image();
    image.src = source;
    await image.decode();
    if (source !== picture) return; // a newer one came meanwhile
    const sheet = new OffscreenCanvas(columns, rows).getContext("2d", { willReadFrequently: true });
    sheet.drawImage(image, 0, 0);
    grey = sheet.getImageData(0, 0, columns, rows).data.filter((_, index) => index % 4 === 0);
    layOut();
    paint();
    read();
    if (now.selected) reveal((now.selected[1] + 0.5) * size[0]);
  }

  // Bring a column into the middle, where the picture is wider than its box.
  function reveal(place) {
    scroll.scrollLeft = place - (scroll.clientWidth - ys.offsetWidth) / 2;
  }

  // Bring it just into sight, clear of the shadow at the edge.
  function follow(column) {
    const SHADOW = 16;
    const [left, right] = [column * size[0] - SHADOW, (column + 1) * size[0] + SHADOW];
    const shown = scroll.clientWidth - ys.offsetWidth;
    if (left < scroll.scrollLeft) scroll.scrollLeft = left;
    else if (right > scroll.scrollLeft + shown) scroll.scrollLeft = right - shown;
  }

  function layOut() {
    if (!now || !frame.clientWidth) return;
    const labelWidth = Math.min(120, 12 + 7 * Math.max(...now.y.map(room), 1));
    const free = frame.clientWidth - labelWidth - 3 * MARK; // the mark of a cell stands out at both sides, and the labels end before it
    const square = now.rows === now.columns && !now.texts;
    // A finger needs larger cells than a pointer; the picture then scrolls in its box.
    const least = window.matchMedia("(max-width: 900px), (pointer: coarse)").matches ? Math.min(16, 800 / now.rows) : 8;
    const widest = now.texts ? 110 : Math.min(square ? 480 / now.rows : 40, 40);
    const wide = Math.max(Math.min(free / now.columns, widest), now.texts ? 62 : now.columns <= 64 ? least : 0);
    const tall = now.texts ? 19 : square ? wide : Math.min(22, 480 / now.rows);
    lettering.style.gridTemplateColumns = `repeat(${now.columns}, ${wide}px)`;
    lettering.style.gridAutoRows = `${tall}px`;
    size = [wide, tall];
    canvas.style.width = `${wide * now.columns}px`;
    canvas.style.height = `${tall * now.rows}px`;
    edge.style.setProperty("--heat-labels", `${labelWidth}px`);
    xs.style.height = `${Math.min(76, 14 + 7 * Math.max(...now.x.map(room), 1))}px`;
    axis(ys, now.y, tall, 15, "top");
    axis(xs, now.x, wide, 15, "left");
    bands.hidden = !now.band;
    bands.style.setProperty("--band", `${now.band * tall}px`);
    place(chosen, now.selected);
  }

  // As many labels as fit, at even steps from the first.
  function axis(node, labels, pitch, each, side) {
    const every = Math.max(1, Math.ceil(each / pitch));
    const shown = [];
    labels.forEach((label, index) => {
      if (index % every) return;
      const mark = make("span", "", label);
      mark.title = label;
      mark.style[side] = `${(index + 0.5) * pitch}px`;
      shown.push(mark);
    });
    node.replaceChildren(...shown);
  }

  function place(node, cell) {
    node.hidden = !cell;
    if (!cell) return;
    node.style.transform = `translate(${cell[1] * size[0]}px, ${cell[0] * size[1]}px)`;
    node.style.width = `${size[0]}px`;
    node.style.height = `${size[1]}px`;
  }

  function read() {
    const cell = at || now.selected;
    place(over, at);
    pad.at(standing(), now.rows, now.columns);
    if (!cell || !grey) {
      readout.textContent = "";
      return;
    }
    const [row, column] = cell;
    const level = grey[row * now.columns + column];
    const share = ((level - 1) / 254) ** (now.root ? 2 : 1);
    const value = now.low + share * (now.high - now.low);
    const digits = Math.min(Math.max(Math.ceil(-Math.log10(now.step)), 0), 6);
    const shown = level ? value.toFixed(digits) + (now.unit && ` ${now.unit}`) : "–";
    const said = now.texts ? now.texts[row][column].split("\n") : [];
    readout.textContent = [`${now.y[row]} × ${now.x[column]}: ${[...said.slice(0, 1), shown].join(" ")}`, ...said.slice(1)].join(" · ");
  }

  function cellAt(event) {
    const edge = canvas.getBoundingClientRect();
    const clip = (value, count) => Math.min(Math.max(Math.floor(value), 0), count - 1);
    return [clip((event.clientY - edge.top) / size[1], now.rows), clip((event.clientX - edge.left) / size[0], now.columns)];
  }

  canvas.addEventListener("pointermove", (event) => {
    at = now && cellAt(event);
    hovered = event.pointerType !== "touch";
    if (now) read();
  });
  canvas.addEventListener("pointerleave", () => {
    at = null;
    hovered = false;
    if (now) read();
  });
  // Where the next move begins.
  function standing() {
    return at || now.selected || [0, 0];
  }
  function go(down, along) {
    const [row, column] = standing();
    at = [Math.min(Math.max(row + down, 0), now.rows - 1), Math.min(Math.max(column + along, 0), now.columns - 1)];
    follow(at[1]);
    read();
  }
  function choose([row, column]) {
    const named = Object.entries(now.keys).map(([name, [axis, first]]) => [name, first + (axis === "row" ? row : column)]);
    const key = { ...Object.fromEntries(named), ...(now.columnKeys ? now.columnKeys[column] : {}) };
    send(Object.keys(key).length ? { row, column, key } : { row, column });
  }

  canvas.addEventListener("click", (event) => {
    at = cellAt(event); // a finger has no place above the picture: what it touched stays read
    read();
    choose(at);
  });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (move) go(...move);
    else if (event.key === "Enter" || event.key === " ") choose(standing());
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  let width = 0;
  new ResizeObserver(() => {
    if (frame.clientWidth !== width) layOut();
    width = frame.clientWidth;
  }).observe(frame);
  onTheme(frame, paint);

  return {
    update(value) {
      // What was read by keys or fingers gives way to a new choice from elsewhere.
      if (String(value.selected) !== String(now?.selected) && !hovered && !frame.contains(document.activeElement)) at = null;
      if (at && (at[0] >= value.rows || at[1] >= value.columns)) at = null;
      now = {
        ...value,
        x: unpack(value.x),
        y: unpack(value.y),
        selected: value.selected && Array.from(value.selected),
        texts: value.texts && unpack(value.texts),
        columnKeys: value.column_keys && unpack(value.column_keys),
      };
      letter();
      attribute(canvas, "aria-label", value.label);
      pad.say(value.label, unpack(value.moves), Object.keys(now.keys).length > 0 || Boolean(now.columnKeys));
      lowest.textContent = number(value.low);
      highest.textContent = number(value.high) + (value.unit && ` ${value.unit}`);
      if (value.png === picture) {
        layOut();
        if (grey) read();
        return;
      }
      picture = value.png;
      decode(value.png, value.rows, value.columns).catch((error) => console.error("matrix not drawn:", error));
    },
  };

  function number(value) {
    return String(Number(value.toPrecision(3)));
  }
};
