// What came of pressing Link: the address goes to the clipboard; where the browser refuses that, it is there to be copied by hand.
decodescope.views.sharing = (root, send, options) => {
  const { make } = decodescope;
  const box = make("div", "share-box");
  const said = box.appendChild(make("span", "share-said"));
  said.setAttribute("role", "status");
  const field = box.appendChild(make("input", "share-address"));
  field.readOnly = true;
  field.setAttribute("aria-label", options.label);
  root.replaceChildren(box);
  box.hidden = true;
  let number = 0;
  let timer = 0;

  const show = (text, address, seconds) => {
    clearTimeout(timer);
    box.hidden = false;
    said.textContent = text;
    field.hidden = !address;
    field.value = address;
    // Under its button, and within the page wherever the header has put that.
    const button = root.closest("#header")?.querySelector("#link");
    if (button) {
      const left = Math.min(button.getBoundingClientRect().left, document.documentElement.clientWidth - box.offsetWidth - 10);
      box.style.left = `${Math.max(left, 10) - root.getBoundingClientRect().left}px`;
      box.style.top = `${button.getBoundingClientRect().bottom + 5 - root.getBoundingClientRect().top}px`;
    }
    if (seconds) timer = setTimeout(() => (box.hidden = true), 1000 * seconds);
  };
  const copied = async (address) => {
    try {
      await navigator.clipboard.writeText(address);
      return true;
    } catch {
      // A frame may not use the clipboard, nor may a page that came without encryption; what is selected may still be copied.
      field.focus({ preventScroll: true });
      field.select();
      return document.execCommand("copy");
    }
  };
  field.addEventListener("focus", () => field.select());
  document.addEventListener("pointerdown", (event) => {
    if (!box.contains(event.target)) box.hidden = true;
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") box.hidden = true;
  });

  return {
    rename: (label) => field.setAttribute("aria-label", label),
    async update(value) {
      if (value.number === number) return;
      number = value.number;
      if (!value.text) return show(value.problem, "", 12);
      const address = `${location.origin}${location.pathname}?${options.parameter}=${value.text}`;
      const before = document.activeElement;
      show("", address, 0);
      const length = (text) => text.replace("{count}", address.length);
      if (await copied(address)) {
        show(length(value.copied), "", 8);
        if (before !== document.activeElement) before?.focus({ preventScroll: true });
      } else {
        show(length(value.by_hand), address, 0);
        field.focus({ preventScroll: true });
        field.select();
      }
    },
  };
};
