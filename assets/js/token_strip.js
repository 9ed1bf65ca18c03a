// Tokens as chips, or as the running text of messages. A new token adds one node; the others stay.
decodescope.views.token_strip = (root, send, props) => {
  const { make, attribute, list, tokenText, current, roving } = decodescope;
  const box = make("div", "strip-box");
  box.setAttribute("role", "group");
  attribute(box, "aria-label", props.label);
  if (props.height) box.style.maxHeight = `${props.height}px`;
  const key = make("div", "key");
  root.replaceChildren(box, key);
  let places = new Map(); // position -> chip

  const groups = list(
    () => {
      const node = make("div", "strip-group");
      node.append(make("small", "strip-label"), make("div", "strip"), make("small", "strip-note"));
      return box.appendChild(node);
    },
    (node, [label, role, note, asText]) => {
      node.dataset.role = role;
      node.classList.toggle("as-text", asText);
      node.children[0].textContent = label;
      node.children[0].hidden = !label;
      node.children[2].textContent = note;
      node.children[2].hidden = !note;
    },
  );
  const chips = list(
    () => {
      const node = make("span", "t");
      node.setAttribute("role", "button");
      node.tabIndex = -1;
      return node;
    },
    (node, [group, text, position, role, state, title]) => {
      const parent = groups.nodes[group].children[1];
      if (node.parentNode !== parent) parent.appendChild(node);
      if (groups.nodes[group].classList.contains("as-text")) node.textContent = text;
      else tokenText(node, text);
      node.dataset.role = role;
      node.dataset.state = state;
      node.dataset.position = position;
      attribute(node, "title", title);
    },
  );
  const legend = list(
    () => key.appendChild(make("span")),
    (node, [role, label]) => {
      node.replaceChildren(...(role ? [make("i")] : []), label);
      node.dataset.role = role;
    },
  );
  const marked = current(box);
  const pick = (node) => send({ position: Number(node.dataset.position) });
  const settle = roving(box, ".t", () => chips.nodes, pick);
  let shape = "";

  return {
    update(value) {
      // Chips only ever join the end of a group; where messages changed, all are placed anew.
      const next = Array.from(value.groups, (item) => JSON.parse(item)[3]).join();
      if (!next.startsWith(shape)) chips.reset();
      if (!keepsOrder(value.chips)) chips.reset();
      shape = next;
      groups.update(value.groups);
      chips.update(value.chips);
      legend.update(value.legend);
      key.hidden = !legend.nodes.length;
      places = new Map(chips.nodes.map((node) => [node.dataset.position, node]));
      const chosen = value.selected === null ? null : places.get(String(value.selected)) || null;
      marked.set(chosen, chosen === chips.nodes[chips.nodes.length - 1]);
      settle(chosen);
    },
  };

  // Whether every chip that stays also stays in its group.
  function keepsOrder(items) {
    return chips.nodes.every((node, index) => {
      if (index >= items.length || !node.parentNode) return true;
      const group = Number.parseInt(items[index].slice(1), 10);
      return groups.nodes.indexOf(node.parentNode.parentNode) === group;
    });
  }
};
