// The pipeline as a row of stations, or (variant "status") the footer's line of facts and checks.
decodescope.views.rail = (root, send, options) => {
  const { make, attribute, list, reveal, roving } = decodescope;
  const status = options.variant === "status";
  const row = make(status ? "div" : "nav", status ? "status-row" : "rail-row");
  attribute(row, "aria-label", options.label);
  root.replaceChildren(row);

  if (status) {
    const marks = { ok: "✓ ", warn: "✗ " };
    const entries = list(
      () => row.appendChild(make("span", "fact")),
      (node, [, title, result, note, tone]) => {
        node.textContent = (marks[tone] || "") + [title, result].filter((part) => part).join(" ");
        node.dataset.tone = tone;
        attribute(node, "title", note);
        attribute(node, "role", tone === "warn" ? "alert" : null);
      },
    );
    return { update: (value) => entries.update(value.stations) };
  }

  const stations = list(
    () => {
      const node = make("button", "st");
      node.type = "button";
      node.tabIndex = -1;
      node.append(make("small"), make("b"), make("em"));
      return row.appendChild(node);
    },
    (node, [id, title, result, note, tone]) => {
      node.dataset.id = id;
      node.dataset.tone = tone;
      [title, result, note].forEach((text, index) => {
        if (node.children[index].textContent !== text) node.children[index].textContent = text;
      });
      node.title = [title, result, note].filter((part) => part).join(" · ");
      node.setAttribute("aria-label", [title, result, note].filter((part) => part).join(", "));
    },
  );
  const settle = roving(row, ".st", () => stations.nodes, (node) => send({ id: node.dataset.id }));
  let active = null;
  return {
    update(value) {
      stations.update(value.stations);
      const open = stations.nodes.find((node) => node.dataset.id === value.active) || null;
      for (const node of stations.nodes) attribute(node, "aria-current", node === open ? "step" : null);
      if (open && value.active !== active) reveal(row, open);
      active = value.active;
      settle(open);
    },
  };
};
