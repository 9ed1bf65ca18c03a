// Boxes that follow their newest item by themselves, and presses, under which nothing moves by itself.
(() => {
  const { measured, reveal } = decodescope;
  const CLICK = 100; // milliseconds after a press in which its click comes, also from a finger

  let pressing = false;
  const missed = new Set(); // what would have followed while something was pressed
  const release = () => {
    pressing = false;
    setTimeout(() => {
      const all = [...missed];
      missed.clear();
      for (const follow of all) follow();
    }, CLICK);
  };
  const listen = (type, act) => document.addEventListener(type, act, { capture: true, passive: true });
  listen("pointerdown", (event) => (pressing = event.button === 0));
  listen("pointerup", release);
  listen("pointercancel", release);
  // The end of a press on a scroll bar is not told.
  listen("pointermove", (event) => {
    if (pressing && !(event.buttons & 1)) release();
  });

  function shows(box, node) {
    const outer = box.getBoundingClientRect();
    const inner = node.getBoundingClientRect();
    return inner.bottom > outer.top && inner.top < outer.bottom && inner.right > outer.left && inner.left < outer.right;
  }

  // One of many marked as current. While it moves on to the newest item the box follows, unless a person scrolled away.
  function current(box) {
    let marked = null;
    let newest = false; // is the one that is marked
    let revealed = null; // the one that was marked when the box last followed, or could have
    const follows = () => !revealed || !revealed.isConnected || !newest || shows(box, revealed);
    const follow = () =>
      measured(box, follows, (does) => {
        if (pressing) {
          missed.add(follow); // a press must end on the item it began on
          return;
        }
        revealed = marked;
        if (does && marked) reveal(box, marked);
      });
    return {
      set(node, isNewest) {
        if (node === marked) return;
        if (marked) marked.removeAttribute("aria-current");
        marked = node;
        if (!node) return;
        node.setAttribute("aria-current", "true");
        newest = isNewest;
        follow();
      },
    };
  }

  Object.assign(decodescope, { pressed: () => pressing, current });
})();
