// A table that is changed in place: a row whose cells are the same keeps its nodes.
decodescope.table = (root, send, label, height) => {
  const PROSE = 40; // letters; a longer text wraps
  const { make, attribute, unpack, list, tokenText, room, scrolls, current, roving } = decodescope;
  const caption = make("div", "table-caption");
  const box = make("div", "table-box");
  const table = make("table");
  const head = table.createTHead().insertRow();
  const body = table.createTBody();
  let called = label;
  const rename = (text) => {
    called = text;
    attribute(table, "aria-label", text);
    resettle();
  };
  if (height) box.style.maxHeight = `${height}px`;
  box.append(table);
  root.replaceChildren(caption, box);
  let columns = [];
  let keys = null;
  let shape = "";
  const resettle = scrolls(box, table, () => keys !== null && rows.nodes.length > 0, () => called);

  const heads = list(
    () => {
      const node = make("th");
      node.scope = "col";
      return head.appendChild(node);
    },
    (node, [text, align, help]) => {
      node.textContent = text;
      node.className = align;
      attribute(node, "role", text ? null : "cell"); // the corner above the names of rows is no head of a column
      attribute(node, "title", help);
      attribute(node, "aria-description", help);
    },
  );
  const rows = list(
    () => {
      const node = body.insertRow();
      for (const [, align, , mono] of columns) {
        node.insertCell().className = `${align}${mono || align === "right" ? " mono" : ""}`;
      }
      return node;
    },
    (node, cells) => cells.forEach((cell, index) => fill(node.cells[index], cell)),
  );
  const marked = current(box);
  const choose = (node) => keys && send({ row: rows.nodes.indexOf(node), key: keys[rows.nodes.indexOf(node)] });
  const settle = roving(box, "tbody tr", () => (keys ? rows.nodes : []), choose);
  rename(label);

  function fill(node, cell) {
    const [text, tone, bar, title] = typeof cell === "string" ? [cell, "", null, ""] : cell;
    const mono = node.classList.contains("mono");
    if (mono) tokenText(node, text);
    else node.textContent = text;
    node.classList.toggle("wraps", !mono && (room(text) > PROSE || text.includes("\n")));
    attribute(node, "data-tone", tone);
    attribute(node, "title", title);
    node.classList.toggle("bar", bar !== null);
    if (bar !== null) node.style.setProperty("--bar", `${100 * bar}%`);
  }

  return {
    rename,
    update(value) {
      const next = Array.from(value.columns).join();
      if (next !== shape) rows.reset();
      shape = next;
      columns = unpack(value.columns);
      keys = value.keys && unpack(value.keys);
      caption.textContent = value.caption;
      caption.hidden = !value.caption;
      heads.update(value.columns);
      rows.update(value.rows);
      table.classList.toggle("pick", keys !== null);
      for (const node of rows.nodes) {
        if (keys && !node.hasAttribute("tabindex")) node.tabIndex = -1;
        if (!keys) node.removeAttribute("tabindex");
      }
      const chosen = value.selected === null ? null : rows.nodes[value.selected] || null;
      marked.set(chosen, chosen === rows.nodes[rows.nodes.length - 1]);
      settle(chosen);
      resettle();
    },
  };
};
decodescope.views.table = (root, send, options) => decodescope.table(root, send, options.label, options.height);
