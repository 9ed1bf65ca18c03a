// A table that is changed in place: a row whose cells are the same keeps its nodes.
decodescope.table = (root, send, label, height) => {
  const PROSE = 40; // letters; a longer text wraps
  const { make, attribute, unpack, list, tokenText, room, scrolls, edged, current, roving } = decodescope;
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
  root.replaceChildren(caption, edged(box));
  let explained = null; // the fold that explains the heads, once there is one that needs it
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
  head.addEventListener("click", (event) => {
    if (event.target.title && explained) explained.open = true;
  });

  // What a pointer finds over a head, for fingers and keys. Its lines are made once somebody wants them.
  function explain(title) {
    if (title && !explained) {
      explained = root.appendChild(make("details", "explained"));
      explained.append(make("summary"), make("dl"));
      explained.addEventListener("toggle", tellHeads);
    }
    if (!explained) return;
    explained.hidden = !title;
    explained.firstChild.textContent = title;
    tellHeads();
  }
  function tellHeads() {
    if (!explained.open) return;
    const lines = columns.filter(([, , help]) => help).map(([text, , help]) => {
      const line = make("div");
      line.append(make("dt", "", text), make("dd", "", help));
      return line;
    });
    explained.lastChild.replaceChildren(...lines);
  }

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
      const anew = next !== shape;
      if (anew) rows.reset();
      shape = next;
      columns = unpack(value.columns);
      if (anew) explain(value.help);
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
