// The parts of a recorded page, made of the same views as the live one, and how each is shown.
decodescope.recordParts = (data, choose) => {
  const { make, attribute, views } = decodescope;
  const shows = new Map(); // by widget: how it takes a value
  const headings = new Map(); // by widget: the heading above it

  function widget(name, options) {
    const box = make("div", `ds-widget ds-${name.replaceAll("_", "-")}`);
    const root = box.appendChild(make("div"));
    box.id = options.id;
    const view = views[name](root, choose, options);
    shows.set(options.id, (value) => {
      box.hidden = !value;
      if (headings.has(options.id)) headings.get(options.id).hidden = !value;
      if (value) view.update(value);
    });
    return box;
  }

  function part(one) {
    if (one.widget) return widget(one.widget, one.options);
    if (one.fold) {
      const fold = make("details", "fold");
      fold.append(make("summary", "", one.fold), ...one.parts.map(part));
      return fold;
    }
    const heading = make("h3", "section", one.heading);
    headings.set(one.id.replace(/-heading$/, ""), heading);
    return heading;
  }

  // A panel is built when it is first opened, and the others keep what they showed.
  const built = new Map();
  function panel(station) {
    if (!built.has(station)) {
      const one = data.panels.find((each) => each.station === station);
      const box = make("section", "panel");
      attribute(box, "aria-label", one.title);
      const reason = widget("rail", { id: `${station}-reason`, label: data.names.notice, variant: "status" });
      box.append(make("h2", "", one.title), ...one.intro.map((text) => make("p", "panel-intro", text)), reason);
      box.append(...one.parts.map(part));
      const ids = Array.from(box.querySelectorAll(".ds-widget"), (each) => each.id);
      built.set(station, { box, ids });
    }
    return built.get(station);
  }

  function button(id, text, press) {
    const node = make("button", "button", text);
    node.type = "button";
    node.id = id;
    node.addEventListener("click", press);
    return node;
  }

  // A menu under its label; nothing where there is no choice.
  function menu(id, label, names, pick) {
    const box = make("label", "menu", label);
    const select = box.appendChild(make("select"));
    select.id = id;
    select.append(...names.map((name, index) => new Option(name, index)));
    select.addEventListener("change", () => pick(Number(select.value)));
    box.hidden = names.length < 2;
    return { box, select };
  }

  return { widget, panel, button, menu, show: (id, value) => shows.get(id)?.(value) };
};
