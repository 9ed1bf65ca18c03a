// Buttons that go from cell to cell of a matrix, for fingers: a cell is too small to be met, a button is not. Held down it goes on.
decodescope.pad = (go, pick) => {
  const { make, attribute } = decodescope;
  const HOLD = 450; // milliseconds until a button that is held goes on
  const PACE = 90; // and between two cells from then on
  const ways = [["←", 0, -1], ["↑", -1, 0], ["↓", 1, 0], ["→", 0, 1]];
  const box = make("div", "pad");
  box.setAttribute("role", "group");
  let timer = 0;
  let held = false;
  const rest = () => clearTimeout(timer);
  const button = (sign, press) => {
    const node = box.appendChild(make("button", "pad-key", sign));
    node.type = "button";
    node.addEventListener("click", () => {
      if (!held) press();
      held = false;
    });
    return node;
  };
  const arrows = ways.map(([sign, down, along]) => {
    const node = button(sign, () => go(down, along));
    const on = () => {
      held = true;
      go(down, along);
      timer = setTimeout(on, PACE);
    };
    node.addEventListener("pointerdown", () => {
      held = false;
      rest();
      timer = setTimeout(on, HOLD);
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) node.addEventListener(end, rest);
    node.addEventListener("contextmenu", (event) => event.preventDefault()); // what a long press opens
    return node;
  });
  const choice = button("✓", pick);

  return {
    box,
    // `names` of the buttons, in the order that they stand in; the last one only where a choice does something.
    say(label, names, picks) {
      attribute(box, "aria-label", label);
      [...arrows, choice].forEach((node, index) => {
        attribute(node, "aria-label", names[index]);
        attribute(node, "title", names[index]);
      });
      choice.hidden = !picks;
    },
    // Where it stands: a way that leads out of the matrix is marked, but keeps the focus that it has.
    at([row, column], rows, columns) {
      arrows.forEach((node, index) => {
        const [, down, along] = ways[index];
        const out = row + down < 0 || row + down >= rows || column + along < 0 || column + along >= columns;
        attribute(node, "aria-disabled", out ? "true" : null);
      });
    },
  };
};
