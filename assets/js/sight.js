// A part of a panel is brought into sight once the panel shows it: the part that a lesson's note speaks of, which is marked too,
// or that a station leads to which shares its panel. Beside a note that stays in sight that is under it; on a phone the note
// would be gone by that, so there a button does it.
decodescope.sight = (() => {
  const { measured, pressed, narrow, motion } = decodescope;
  const PATIENCE = 60; // times 50 milliseconds: a panel that is opened for the first time is built first
  let wanted = "";
  let marked = [];
  let timer = 0;

  const heading = (id) => document.getElementById(`${id}-heading`);
  const mark = (nodes) => {
    for (const node of marked) node.removeAttribute("data-pointed");
    for (const node of nodes) node.setAttribute("data-pointed", "");
    marked = nodes;
  };
  // To the end of its section: a remark belongs to the picture under it.
  function end(part) {
    let bottom = part.getBoundingClientRect().bottom;
    for (let next = part.nextElementSibling; next && !next.classList.contains("section"); next = next.nextElementSibling) {
      bottom = Math.max(bottom, next.getBoundingClientRect().bottom);
    }
    return bottom;
  }
  // Where the open note ends on the screen; and how far down it reaches where it stays in sight.
  const note = () => document.querySelector("#lesson .lesson");
  const under = () => Math.max(0, note()?.getBoundingClientRect().bottom ?? 0);
  const stuck = () => {
    const strip = note()?.closest(".block");
    return strip && getComputedStyle(strip).position === "sticky" ? strip.offsetHeight + 8 : 0;
  };
  // A browser takes what lies under the note for in sight: what the keyboard comes to there is brought out.
  const uncover = (by) => {
    if (by > 0) window.scrollBy({ top: -by, behavior: "instant" });
  };
  document.addEventListener("focusin", ({ target }) => {
    if (pressed() || target.tabIndex < 0 || !target.closest("#right .tabitem")) return;
    const SHADOW = 8; // as in the style sheet
    measured(uncover, () => stuck() && under() + SHADOW - target.getBoundingClientRect().top, uncover);
  });
  let following = false; // since the person has done nothing after the part was wanted
  // Into sight under the note, where it is not there as a whole.
  const scroll = (part, always) =>
    measured(
      mark,
      () => {
        const top = (heading(part.id) || part).getBoundingClientRect().top;
        const seen = top >= under() && end(part) <= window.innerHeight;
        return [seen, top - stuck() - 14];
      },
      ([seen, by]) => {
        if (always || (following && !seen)) window.scrollBy({ top: by, behavior: motion() });
      },
    );
  // Pictures above may still grow: looked at again whenever the column does, until the person does something.
  // A press must end on what it began on, so a page that still glides stands where it is.
  let settled = null; // the part that is kept in sight
  const grown = new ResizeObserver(() => scroll(settled, false));
  const leave = (event) => {
    if (following && event?.type === "pointerdown") window.scrollTo({ top: window.scrollY, behavior: "instant" });
    following = false;
    grown.disconnect();
  };
  for (const act of ["wheel", "pointerdown", "keydown"]) document.addEventListener(act, leave, { passive: true });
  const settle = (part) => {
    settled = part;
    grown.observe(document.getElementById("right")); // which tells of the size there is, too
  };
  function look(tries, use) {
    clearTimeout(timer);
    const part = document.getElementById(wanted);
    if (part?.checkVisibility() && !part.querySelector(":scope > .html-container > * > [hidden]")) use(part);
    else if (tries) timer = setTimeout(() => look(tries - 1, use), 50);
  }
  function want(id, use) {
    wanted = id;
    clearTimeout(timer);
    leave();
    if (!id) return;
    following = !pressed();
    timer = setTimeout(() => look(PATIENCE, use), 50);
  }
  return {
    // The part that the note speaks of; none where it is "".
    point(id) {
      mark([]);
      want(id, (part) => {
        mark([heading(part.id) || part]);
        if (following && !narrow()) settle(part);
      });
    },
    // Where a station leads: its part, or the panel's beginning. Where the panel lies below the conversation it is gone to.
    lead(id) {
      const column = document.getElementById("right");
      const above = narrow() || (!id && column?.getBoundingClientRect().top < 0);
      if (above) column?.scrollIntoView({ behavior: motion() });
      want(id, (part) => following && settle(part));
    },
    // The part again, by a button: the keyboard and the screen reader go along.
    show: () =>
      look(0, (part) => {
        scroll(part, true);
        const node = heading(part.id) || part;
        node.tabIndex = -1;
        node.focus({ preventScroll: true });
      }),
  };
})();
