// A recorded run without a server: the cursor moves by clicks, keys and by itself, and every widget shows its value there.
decodescope.recordPage = (data) => {
  const { make, recordParts, record } = decodescope;
  const { words, places } = data;
  const HOLD = 800; // milliseconds a token, when it plays
  const value = record.reader(data);
  const parts = recordParts(data, chosen);
  const steps = places.flatMap(([, , step], index) => (step === null ? [] : [index]));
  let place = steps[0] ?? places.length - 1;
  let head = 0;
  let station = Object.keys(data.owner).includes("draw") ? "draw" : Object.keys(data.owner)[0];
  let playing = null;

  // The page.

  const theme = parts.button("theme", "", () => setTheme(!document.body.classList.contains("dark")));
  const previous = parts.button("previous", words.previous, () => move(-1));
  const play = parts.button("play", words.play, () => (playing ? pause() : start()));
  const next = parts.button("next", words.next, () => move(1));
  const slider = make("input");
  Object.assign(slider, { type: "range", id: "slider", min: 0, max: places.length - 1, step: 1 });
  slider.setAttribute("aria-label", words.slider);
  slider.addEventListener("input", () => go(Number(slider.value)));
  const where = make("output", "where");
  const notice = make("p", "said");
  notice.setAttribute("role", "status");
  const turn = parts.menu("turn", words.turn, data.turns, (number) => go(steps.find((at) => places[at][0] === number) ?? firstOf(number)));
  const heads = parts.menu("head", words.head, data.heads.map(([, , name]) => name), (number) => turnTo(number));
  const firstOf = (number) => places.findIndex(([one]) => one === number);

  const player = make("div", "player");
  player.setAttribute("role", "group");
  player.setAttribute("aria-label", words.player);
  player.append(previous, play, next, slider, where);

  const header = make("header");
  const title = make("h1", "", "Decodescope");
  header.append(title, make("span", "model", data.model), turn.box, heads.box, theme);

  const left = make("section", "pane");
  left.id = "left";
  left.setAttribute("aria-label", data.names.conversation);
  left.append(
    make("h2", "", data.names.conversation),
    parts.widget("token_strip", { id: "conversation", label: data.names.conversation, height: 320 }),
    parts.widget("rail", { id: "notice", label: data.names.notice, variant: "status" }),
    player,
    notice,
    make("h2", "", data.names.timeline),
    parts.widget("token_strip", { id: "timeline", label: data.names.timeline, height: 320 }),
    make("p", "hint", words.keys),
  );
  const right = make("div", "pane");
  right.id = "right";

  const experiment = make("details", "numbers");
  experiment.append(make("summary", "", words.experiment), make("pre", "", data.experiment), make("p", "", data.made));
  const footer = make("footer");
  footer.append(parts.widget("rail", { id: "status", label: data.names.status, variant: "status" }), experiment, make("p", "", words.footer));

  const main = make("main");
  const columns = make("div");
  columns.id = "main";
  columns.append(left, right);
  main.append(parts.widget("rail", { id: "rail", label: data.names.rail, variant: "rail" }), columns);
  document.getElementById("wait").remove();
  document.body.prepend(header, make("p", "intro", words.intro), main, footer);

  // What is in sight.

  function draw() {
    const index = place * data.heads.length + head;
    const show = (id) => parts.show(id, value(id, index));
    for (const id of ["conversation", "timeline", "notice", "status"]) show(id);
    parts.show("rail", { ...value("rail", index), active: station });
    const { box, ids } = parts.panel(data.owner[station]);
    if (right.firstElementChild !== box) right.replaceChildren(box);
    ids.forEach(show);
    where.textContent = data.where[place];
    slider.value = place;
    slider.setAttribute("aria-valuetext", data.where[place]);
    turn.select.value = places[place][0];
    heads.select.value = head;
    previous.disabled = place === 0;
    next.disabled = place === places.length - 1;
  }

  function go(to) {
    place = Math.min(Math.max(to, 0), places.length - 1);
    notice.textContent = "";
    draw();
  }

  function turnTo(number) {
    head = number;
    notice.textContent = "";
    draw();
  }

  function move(by) {
    pause();
    go(place + by);
  }

  // Sampled tokens only, one after another; from the last one it begins anew.
  function start() {
    if (!steps.length) return;
    if (place >= steps[steps.length - 1]) go(steps[0]);
    document.body.classList.add("playing");
    play.textContent = words.pause;
    playing = setInterval(() => {
      const to = steps.find((at) => at > place);
      if (to === undefined) pause();
      else go(to);
    }, HOLD);
  }

  function pause() {
    clearInterval(playing);
    playing = null;
    document.body.classList.remove("playing");
    play.textContent = words.play;
  }

  // A click in any widget: what it names is looked for in this file.
  function chosen(sent) {
    const key = sent.key && typeof sent.key === "object" ? sent.key : sent;
    if (typeof sent.id === "string" && sent.id in data.owner) {
      station = sent.id;
      draw();
      return;
    }
    pause();
    if ("token_id" in key) notice.textContent = words.token_here;
    else if ("position" in key) reach(key.position);
    else if ("fed" in key) reach(key.fed + (key.fed >= promptOf(places[place][0]) ? 1 : 0));
    else if ("layer" in key || "head" in key) look(key);
    else notice.textContent = words.not_here;
  }

  const promptOf = (number) => places.find(([one, , step]) => one === number && step === 0)?.[1] ?? Infinity;

  function reach(position) {
    const to = places.findIndex(([one, at]) => one === places[place][0] && at === position);
    if (to >= 0) go(to);
    else notice.textContent = position < promptOf(places[place][0]) ? words.prompt_here : words.not_here;
  }

  function look(key) {
    const wanted = { layer: data.heads[head][0], head: data.heads[head][1], ...key };
    const to = data.heads.findIndex(([layer, one]) => layer === wanted.layer && one === wanted.head);
    if (to >= 0) turnTo(to);
    else notice.textContent = words.not_here;
  }

  // The keyboard. Keys that a focused control needs itself are left alone.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, select") || decodescope.scrolling(event)) return;
    if (event.key === "ArrowLeft") move(-1);
    else if (event.key === "ArrowRight") move(1);
    else if (event.key === " " && !event.target.closest("button, summary, [role=button]")) play.click();
    else if (/^[1-9]$/.test(event.key)) document.querySelectorAll("#rail .st")[Number(event.key) - 1]?.click();
    else return;
    event.preventDefault();
  });

  // Light or dark: by the reader's preference until the switch is pressed.
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  let own = false;
  function setTheme(dark, asked = true) {
    own ||= asked;
    document.body.classList.toggle("dark", dark);
    theme.textContent = dark ? words.theme_light : words.theme_dark;
  }
  prefers.addEventListener("change", () => own || setTheme(prefers.matches, false));
  setTheme(prefers.matches, false);
  draw();
};

(async () => {
  const wait = document.getElementById("wait");
  if (!("DecompressionStream" in window)) {
    wait.textContent = document.body.dataset.noInflate;
    return;
  }
  let data = null;
  try {
    data = JSON.parse(await decodescope.record.inflate("data"));
  } catch {
    wait.textContent = document.body.dataset.damaged;
    return;
  }
  decodescope.recordPage(data);
})();
