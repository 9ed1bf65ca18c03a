// The keyboard: ← → move along the tokens, space runs and pauses, 1–9 choose a station, N and P turn a lesson's notes.
// Keys typed into a field, and keys that a focused control needs itself, are left alone.
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
  if (event.key === "ArrowLeft") press("move-left");
  else if (event.key === "ArrowRight") press("move-right");
  else if (event.key === " " && !event.target.closest("button, summary, [role=button], [role=tab]")) press("run") || press("stop");
  else if (event.key === "n") press("lesson-next");
  else if (event.key === "p") press("lesson-back");
  else if (/^[1-9]$/.test(event.key)) {
    const stations = document.querySelectorAll("#rail .st");
    stations[Number(event.key) - 1]?.click();
  }
});
