// The keyboard: ← → move along the tokens, space runs and pauses, 1–9 choose a station, N and P turn a lesson's notes.
// Keys typed into a field, and keys that a focused control needs itself, are left alone.
(() => {
  let moved = null; // the token in sight from which an arrow key last moved on
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, textarea, select, [contenteditable=true], [role=listbox]")) return;
    if (decodescope.scrolling(event)) return;
    const press = (id) => {
      const button = document.getElementById(id);
      if (!button || button.disabled) return false;
      button.click();
      event.preventDefault();
      return true;
    };
    // A key that is held goes on once its last move is seen, and makes no token: so it never runs past the end.
    const move = (id) => {
      const now = document.querySelector("#timeline .t[aria-current]");
      const chips = document.querySelectorAll("#timeline .t");
      if (event.repeat && (now === moved || (id === "move-right" && now === chips[chips.length - 1]))) event.preventDefault();
      else if (press(id)) moved = now;
    };
    if (event.key === "ArrowLeft") move("move-left");
    else if (event.key === "ArrowRight") move("move-right");
    else if (event.key === " " && !event.target.closest("button, summary, [role=button], [role=tab]")) {
      if (event.repeat) event.preventDefault(); // a key that is held neither stops what it has begun nor scrolls
      else press("run") || press("stop");
    } else if (event.key === "n") press("lesson-next");
    else if (event.key === "p") press("lesson-back");
    else if (/^[1-9]$/.test(event.key)) {
      const stations = document.querySelectorAll("#rail .st");
      stations[Number(event.key) - 1]?.click();
    }
  });
})();
