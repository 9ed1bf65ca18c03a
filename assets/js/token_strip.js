// Tokens as chips, or as the running text of messages. A new token adds one node; the others stay.
decodescope.views.token_strip = (root, send, options) => {
  const { make, attribute, unpack, list, tokenText, scrolls, edged, current, roving } = decodescope;
  const box = make("div", "strip-box");
  box.setAttribute("role", "group");
  const rename = (label) => attribute(box, "aria-label", label);
  rename(options.label);
  if (options.height) box.style.maxHeight = `${options.height}px`;
  const key = make("div", "key");
  root.replaceChildren(edged(box), key);
  const spots = []; // group and position of each chip
  let misplaced = false;

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
    (node, [group, text, position, role, state, title], index) => {
      spots[index] = [group, position];
      if (!node.parentNode) groups.nodes[group].children[1].append(node);
      else if (node.parentNode !== groups.nodes[group].children[1]) misplaced = true;
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
  const resettle = scrolls(box, box, () => chips.nodes.length > 0); // remarks alone have nothing that keys would reach
  let kinds = "";

  return {
    rename,
    update(value) {
      const next = unpack(value.groups).map(([, , , asText]) => Number(asText)).join("");
      if (!next.startsWith(kinds)) chips.reset(); // text became chips, or chips text
      kinds = next;
      groups.update(value.groups);
      chips.update(value.chips);
      spots.length = chips.nodes.length;
      if (misplaced) chips.nodes.forEach((node, index) => groups.nodes[spots[index][0]].children[1].append(node));
      misplaced = false;
      legend.update(value.legend);
      key.hidden = !legend.nodes.length;
      const at = value.selected === null ? -1 : spots.findLastIndex(([, position]) => position === value.selected);
      const chosen = chips.nodes[at] || null;
      marked.set(chosen, at === chips.nodes.length - 1);
      settle(chosen);
      resettle();
    },
  };
};
