// What gradio's parts do not say or do by themselves: the way to the panel past everything, folds that say whether they are
// open, a menu that closes, and new words of the answer for a screen reader.

// The first stop of the Tab key: a link over everything to the panel.
decodescope.views.skip = (root, send, options) => {
  const { make } = decodescope;
  const link = root.appendChild(make("a", "skip", options.label));
  return {
    rename: (label) => (link.textContent = label),
    update({ to }) {
      link.href = `#${to}`;
      link.onclick = (event) => {
        event.preventDefault(); // the address holds the link of an experiment
        const target = document.getElementById(to);
        target.tabIndex = -1;
        target.focus({ preventScroll: true });
        target.scrollIntoView({ block: "start" });
      };
    },
  };
};

// On a narrow screen all stands in one column: a button that stays in sight leads up again, once what it leads to is out of it.
decodescope.views.way = (root, send, options) => {
  const { make, attribute } = decodescope;
  const button = root.appendChild(make("button", "way", options.label));
  button.type = "button";
  let target = null;
  button.addEventListener("click", () => {
    target.scrollIntoView({ block: "start", behavior: decodescope.motion() });
    const place = [...target.querySelectorAll("[aria-current], h2")].find((node) => node.checkVisibility());
    place?.focus({ preventScroll: true });
  });
  return {
    rename: (label) => (button.textContent = label),
    update({ to }) {
      if (target) return;
      target = document.getElementById(to);
      new IntersectionObserver(([{ isIntersecting }]) => attribute(button, "hidden", isIntersecting)).observe(target);
    },
  };
};

// Gradio's folds are buttons that do not say whether they are open; and a button that comes late, with a tab that is shown for
// the first time, does not know yet whether it is hidden.
(() => {
  const say = (button) => decodescope.attribute(button, "aria-expanded", String(button.classList.contains("open")));
  const watch = new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === "attributes") {
        if (target.classList.contains("label-wrap")) say(target);
      } else {
        for (const node of addedNodes) {
          if (!(node instanceof HTMLElement)) continue; // charts bring thousands of others at every token
          if (node.matches("button[id]") || node.querySelector("button[id]")) decodescope.setStates();
          if (node.matches(".label-wrap")) say(node);
          node.querySelectorAll(".label-wrap").forEach(say);
        }
      }
    }
  });
  watch.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["class"] });
})();

// Escape closes what is open, and what lies over the page closes when a person goes on elsewhere.
(() => {
  const menu = () => document.querySelector("#record-menu > button.open");
  const elsewhere = (event) => {
    if (menu() && !event.target.closest("#record-menu")) menu().click();
  };
  document.addEventListener("pointerdown", elsewhere);
  document.addEventListener("focusin", elsewhere);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.repeat || event.defaultPrevented) return;
    const button = menu();
    const list = document.querySelector("#lesson .lesson-shelf:not([hidden]) [data-do=list]");
    if (button) {
      button.click();
      button.focus();
    } else if (list?.checkVisibility() && !event.target.closest("input, textarea, [role=listbox]")) {
      list.click();
      document.getElementById("lessons").focus();
    }
  });
})();

// New words of the answer, once no more come for a moment: each token by itself would be too much to listen to.
decodescope.views.heard = (root, send, options) => {
  const { make } = decodescope;
  const place = root.appendChild(make("div", "only-read"));
  place.setAttribute("role", "status");
  const rename = (label) => place.setAttribute("aria-label", label);
  rename(options.label);
  let before = null; // the last message when it was last quiet
  let timer = 0;
  const quiet = () => {
    const running = document.getElementById("stop");
    if (running && !running.disabled) return wait();
    const groups = document.querySelectorAll("#conversation .strip-group .strip");
    const last = groups[groups.length - 1]?.textContent ?? "";
    if (before !== null && last.length > before.length && last.startsWith(before)) place.textContent = last.slice(before.length);
    else if (before !== null && last !== before && !before.startsWith(last)) place.textContent = last;
    before = last;
  };
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(quiet, 700);
  };
  return {
    rename,
    update({ of }) {
      const strip = document.getElementById(of);
      if (strip) new MutationObserver(wait).observe(strip, { subtree: true, childList: true, characterData: true });
      wait();
    },
  };
};

// A panel's button may ask for seconds of work: it says so until the answer is there.
(() => {
  const buttons = ".tools > button[id^=ask-]";
  document.addEventListener("click", (event) => event.target.closest(buttons)?.setAttribute("aria-busy", "true"));
  decodescope.answered = (id) => document.getElementById(id)?.removeAttribute("aria-busy");
})();
