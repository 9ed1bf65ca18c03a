// The lesson strip: the list of lessons, or the note that is played, with its question and answer.
decodescope.views.lesson = (root, send, options) => {
  const { make, attribute, unpack, list, edged, scrolls, pressed, narrow, sight } = decodescope;
  const QUOTED = /(["“] [^\s"”]{1,20}["”])/; // a token that begins with a space: no line ends between it and its quotation mark
  const box = root.appendChild(make("section", "lesson"));
  const rename = (label) => attribute(box, "aria-label", label);
  rename(options.label);

  const button = (action, name = "", id = "") => {
    const node = make("button", `lesson-button ${name}`.trim());
    node.type = "button";
    node.dataset.do = action;
    if (id) node.id = id;
    // A press asks for what the button says just now: pressed twice, it does not undo itself.
    node.addEventListener("click", () =>
      send({ do: action, open: node !== shelfClose, show: node.getAttribute("aria-expanded") === "false" }),
    );
    return node;
  };
  const say = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
    node.hidden = !text;
  };
  const paragraphs = (parent) => {
    const inner = parent.appendChild(make("div", "lesson-paragraphs"));
    return list(
      () => inner.appendChild(make("p")),
      (node, text) => node.replaceChildren(...text.split(QUOTED).map((part, index) => (index % 2 ? make("span", "lesson-quoted", part) : part))),
    );
  };

  // The list.
  const shelf = box.appendChild(make("nav", "lesson-shelf"));
  const shelfHead = shelf.appendChild(make("div", "lesson-head"));
  const shelfTitle = shelfHead.appendChild(make("h2"));
  const shelfClose = shelfHead.appendChild(button("list"));
  const empty = shelf.appendChild(make("p"));
  const grid = shelf.appendChild(make("div", "lesson-cards"));
  const cards = list(
    () => {
      const card = grid.appendChild(make("button", "lesson-card"));
      card.type = "button";
      card.append(make("b"), make("small"), make("span"));
      card.addEventListener("click", () => send({ do: "open", id: card.dataset.id }));
      return card;
    },
    (card, [id, title, summary, meta, current]) => {
      card.dataset.id = id;
      [title, meta, summary].forEach((text, index) => (card.children[index].textContent = text));
      attribute(card, "aria-current", current ? "true" : null);
    },
  );

  // The note.
  const note = box.appendChild(make("div", "lesson-note"));
  const head = note.appendChild(make("div", "lesson-head"));
  const title = head.appendChild(make("h2"));
  const where = head.appendChild(make("small", "lesson-where"));
  const back = head.appendChild(button("back", "", "lesson-back"));
  const next = head.appendChild(button("next", "lesson-main", "lesson-next"));
  const all = head.appendChild(button("list", "lesson-all"));
  const close = head.appendChild(button("close"));
  const text = make("div", "lesson-text");
  note.append(edged(text));
  text.setAttribute("aria-live", "polite");
  const look = paragraphs(text);
  const asked = text.appendChild(make("div", "lesson-question"));
  const askedLabel = asked.appendChild(make("small"));
  const question = paragraphs(asked);
  const answered = text.appendChild(make("div", "lesson-answer"));
  const answeredLabel = answered.appendChild(make("small"));
  const answer = paragraphs(answered);
  const resettle = scrolls(text, text.firstElementChild, () => false, () => title.textContent);
  const foot = note.appendChild(make("div", "lesson-foot"));
  const reveal = foot.appendChild(button("reveal"));
  const point = foot.appendChild(make("button", "lesson-button lesson-point"));
  const away = foot.appendChild(button("here", "lesson-main"));
  const live = foot.appendChild(button("live"));
  const said = foot.appendChild(make("small"));

  shelf.hidden = note.hidden = true;
  shelfTitle.tabIndex = title.tabIndex = -1;
  // The keyboard and the screen reader go along from the header to the list, and from the list to the lesson.
  const follow = (node) => setTimeout(() => node.focus({ preventScroll: true }));
  // What goes away or goes dead with its own press hands the focus on, which would fall to the beginning of the page.
  const keep = (focused) => {
    if (!box.contains(focused) || (focused.checkVisibility() && !focused.disabled)) return;
    follow(box.hidden ? document.getElementById("lessons") : title);
  };
  point.type = "button";
  point.addEventListener("click", () => sight.show());
  let key = "";
  return {
    rename,
    update(value) {
      const focused = document.activeElement;
      if (value.list && shelf.hidden) follow(shelfTitle);
      if (value.note && !shelf.hidden && !value.list) follow(title);
      shelf.hidden = !value.list;
      note.hidden = !value.note;
      box.hidden = shelf.hidden && note.hidden;
      if (value.list) {
        shelf.setAttribute("aria-label", value.list.label);
        say(shelfTitle, value.list.label);
        say(shelfClose, value.list.close);
        say(empty, value.list.empty);
        cards.update(value.list.cards);
      }
      if (!value.note) {
        if (key) sight.point(""); // else a station's part may be on its way into sight
        key = "";
        keep(focused);
        return;
      }
      const now = value.note;
      say(title, now.title);
      say(where, now.where);
      say(back, now.back);
      back.disabled = now.first;
      say(next, now.next);
      say(all, now.list);
      say(close, now.close);
      look.update(now.look);
      asked.hidden = !unpack(now.question).length;
      say(askedLabel, now.question_label);
      question.update(now.question);
      answered.hidden = !unpack(now.answer).length;
      say(answeredLabel, now.answer_label);
      answer.update(now.answer);
      say(reveal, now.reveal);
      attribute(reveal, "aria-expanded", now.reveal ? String(!answered.hidden) : null);
      say(away, now.away);
      note.toggleAttribute("data-here", !now.away); // the panel's own introduction makes room then
      say(point, now.part && !now.away ? now.point : "");
      say(live, now.live);
      attribute(live, "title", now.live_hint);
      say(said, now.said);
      resettle();
      foot.hidden = [...foot.children].every((child) => child.hidden);
      if (now.key !== key) {
        text.scrollTop = 0;
        // Who has scrolled down to read the note before finds the new one at the top.
        const column = document.getElementById("right");
        const above = narrow() ? box : !now.part && column.getBoundingClientRect().top < 0 ? column : null;
        if (!pressed()) above?.scrollIntoView({ block: "start" });
        sight.point(now.part);
      }
      key = now.key;
      keep(focused);
    },
  };
};
