// The pipeline as a row of stations, with a slim row of further groups under it; or (variant "status") the footer's line of facts and checks.
decodescope.views.rail = (root, send, options) => {
  const { make, attribute, list, edged, reveal, roving, sight } = decodescope;
  const status = options.variant === "status";
  const row = make(status ? "div" : "nav", status ? "status-row" : "rail-row");
  const rename = (label) => attribute(row, "aria-label", label);
  rename(options.label);
  root.replaceChildren(row);

  if (status) {
    row.setAttribute("role", options.live ? "status" : "group"); // what is live is read out when it changes
    const marks = { ok: "✓ ", warn: "✗ " };
    const entries = list(
      () => row.appendChild(make("span", "fact")),
      (node, [, title, result, note, tone]) => {
        node.textContent = (marks[tone] || "") + [title, result].filter((part) => part).join(" ");
        node.dataset.tone = tone;
        attribute(node, "title", note);
        attribute(node, "role", tone === "warn" && !options.live ? "alert" : null);
      },
    );
    return { rename, update: (value) => entries.update(value.stations) };
  }

  const within = (box) =>
    list(
      () => {
        const node = make("button", "st");
        node.type = "button";
        node.tabIndex = -1;
        node.append(make("small"), make("b"), make("em"));
        return box.appendChild(node);
      },
      (node, [id, title, result, note, tone, part]) => {
        node.dataset.id = id;
        node.dataset.part = part;
        node.dataset.tone = tone;
        [title, result, note].forEach((text, index) => {
          if (node.children[index].textContent !== text) node.children[index].textContent = text;
        });
        node.title = [title, result, note].filter((part) => part).join(" · ");
        node.setAttribute("aria-label", [title, result, note].filter((part) => part).join(", "));
      },
    );
  const line = make("div", "rail-line");
  const slim = make("div", "rail-line slim");
  row.append(edged(line), edged(slim));
  const stations = within(line);
  const groups = [];
  const nodes = () => [stations, ...groups.map((one) => one.stations)].flatMap((one) => one.nodes);
  // One stop of the Tab key a line, so that each can be scrolled by keys where it is wider than its box.
  const pick = (node) => {
    send({ id: node.dataset.id });
    sight.lead(node.dataset.part);
  };
  const settles = [
    roving(line, ".st", () => stations.nodes, pick),
    roving(slim, ".st", () => groups.flatMap((one) => one.stations.nodes), pick),
  ];
  const named = (label) => {
    const group = slim.appendChild(make("div", "rail-group"));
    const name = group.appendChild(make("span", "rail-name", label));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    return { stations: within(group), name, group };
  };
  let active = null;
  return {
    rename,
    update(value) {
      stations.update(value.stations);
      Array.from(value.more).forEach(({ label, stations: more }, index) => {
        groups[index] ||= named(label);
        groups[index].stations.update(more);
        groups[index].name.textContent = label;
        attribute(groups[index].group, "aria-label", label);
      });
      slim.hidden = !groups.length;
      const open = nodes().find((node) => node.dataset.id === value.active) || null;
      for (const node of nodes()) attribute(node, "aria-current", node === open ? "step" : null);
      if (open && value.active !== active) reveal(open.closest(".rail-line"), open);
      active = value.active;
      settles.forEach((settle, index) => settle([line, slim][index].contains(open) ? open : null));
    },
  };
};
