// What all widgets share. Texts reach the page as text nodes only: no innerHTML, no template, no eval.
window.decodescope = (() => {
  const views = {};
  const themed = new Set();
  const shown = new Map(); // by element id: how a mounted widget is drawn
  const fed = new Map(); // by element id: the newest value from the feed, also for a widget that is not mounted yet
  const names = new Map(); // by element id: what the custom views are called, where that is not what they were built with
  const renamed = new Map(); // by element id: how a mounted widget is renamed
  let choices = 0; // made so far: quick ones overtake one another on their way, and the server must know which is the last
  const states = { hidden: {}, disabled: {} }; // by element id: what the feed said last

  // Gradio calls this once a component is mounted. `send` brings a choice back to Python as the event "select".
  function mount(name, element, props, trigger, watch, options) {
    const root = element.firstElementChild || element;
    const send = (data) => trigger("select", { ...data, order: (choices += 1) });
    const view = views[name](root, send, { ...options, label: names.get(options.id) ?? options.label });
    renamed.set(options.id, view.rename);
    const show = (value) => {
      root.hidden = !(value && typeof value === "object");
      if (!root.hidden) view.update(value);
    };
    // A value of its own, or else what the feed brought: also before this widget's tab was first shown.
    const draw = () => show(props.value || fed.get(options.id));
    root.hidden = true; // until there is something to show
    shown.set(options.id, show);
    watch("value", draw);
    // Not inside gradio's effect, which would then follow every item that is read.
    queueMicrotask(draw);
    queueMicrotask(setStates); // of what came with it when its tab was first shown
  }

  function setStates() {
    for (const [property, all] of Object.entries(states)) {
      for (const [id, is] of Object.entries(all)) {
        const element = document.getElementById(id);
        if (element) element[property] = is;
      }
    }
  }

  // One value that carries those of many widgets, by element id, and what is hidden or disabled just now. Gradio spends
  // milliseconds on each output of an event, so a live page has this one. What can wait is drawn once the rest is shown.
  views.feed = (root, send, options) => {
    for (const [property, all] of Object.entries(states)) Object.assign(all, options[property]); // until a value comes
    let language = "en"; // of the labels, or that they were asked to have; a page is built in English
    const pass = (parts) => {
      for (const [id, part] of Object.entries(parts)) {
        fed.set(id, part);
        shown.get(id)?.(part);
      }
    };
    let newest = -Infinity; // when the value that is shown was begun
    let waiting = null;
    const passWaiting = () => {
      const parts = waiting;
      waiting = null;
      pass(parts);
    };
    const ask = (wanted) => setTimeout(() => send({ language: wanted })); // not inside gradio's effect
    return {
      update(value) {
        if (value.began < newest) return;
        newest = value.began;
        const only = Object.keys(value.only);
        if (only.length) {
          pass(Object.fromEntries(only.map((id) => [id, value.first[id]])));
          return;
        }
        for (const [property, all] of Object.entries(states)) Object.assign(all, value[property]);
        setStates();
        attribute(document.documentElement, "lang", value.language); // gradio takes that of the browser
        if (value.language !== language) ask(value.language);
        language = value.language;
        pass(value.first);
        if (!waiting) setTimeout(passWaiting);
        waiting = value.soon;
      },
    };
  };

  // The labels in another language: gradio's own components get theirs by themselves, the custom views from here.
  views.names = () => ({
    update(value) {
      for (const [id, label] of Object.entries(value.names)) {
        names.set(id, label);
        renamed.get(id)?.(label);
      }
    },
  });

  function make(tag, name, text) {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function attribute(node, name, value) {
    if (value === null || value === undefined || value === "" || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }

  // What asks for sizes waits for the next frame, where the browser lays out anyway: first all questions are asked, then all
  // answers used. Asked at once, each would have the whole page laid out again while a token comes in.
  const asked = new Map(); // by owner: what it asks, and what it does with the answer
  function measured(owner, ask, use) {
    if (!asked.size) {
      requestAnimationFrame(() => {
        const answers = [...asked.values()].map(([question, answered]) => [answered, question()]);
        asked.clear();
        for (const [answered, answer] of answers) answered(answer);
      });
    }
    asked.set(owner, [ask, use]);
  }

  const BLOCK = 32;

  // The items of a list that travels in blocks of JSON lines.
  const unpack = (blocks) => Array.from(blocks).flatMap((block) => block.split("\n").map((line) => JSON.parse(line)));

  // Nodes kept in step with such a list: an unchanged block or item leaves its nodes alone.
  function list(create, patch) {
    let known = []; // blocks
    let lines = []; // of all items
    const nodes = [];
    return {
      nodes,
      update(value) {
        const blocks = Array.from(value);
        let count = blocks.length * BLOCK;
        blocks.forEach((block, at) => {
          const last = at === blocks.length - 1;
          if (known[at] === block && !last) return;
          const items = block.split("\n");
          if (last) count -= BLOCK - items.length;
          if (known[at] === block) return;
          items.forEach((item, offset) => {
            const index = at * BLOCK + offset;
            if (lines[index] === item) return;
            lines[index] = item;
            const content = JSON.parse(item);
            if (index >= nodes.length) nodes.push(create(content, index));
            patch(nodes[index], content, index);
          });
        });
        for (const node of nodes.splice(count)) node.remove();
        lines.length = nodes.length;
        known = blocks;
      },
      reset() {
        for (const node of nodes.splice(0)) node.remove();
        known = [];
        lines = [];
      },
    };
  }

  const INVISIBLE = /([␣⏎⇥␍]+|⟨[0-9A-FU+]{2,8}⟩)/;

  // Token text, with the marks that stand for white space and bytes set fainter.
  function tokenText(node, text) {
    const parts = text.split(INVISIBLE);
    if (parts.length === 1) node.textContent = text;
    else node.replaceChildren(...parts.map((part, index) => (index % 2 ? make("span", "ws", part) : part)).filter((part) => part));
  }

  // How much room a text takes, in Latin letters: Chinese ones are twice as wide.
  const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/g;
  const room = (text) => text.length + (text.match(WIDE) || []).length;

  const scrollers = new WeakSet();
  // Whether a key is for the box that has the focus, which it scrolls.
  const scrolling = ({ target, key }) => scrollers.has(target) && /^(Arrow| |Home|End)/.test(key);

  // A box that has more than it shows is reached by Tab, so that the arrow keys scroll it; not where what is in it can be.
  // Without `label` it keeps the role and the name that it has.
  function scrolls(box, inside, reachable, label) {
    const more = () => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    const say = (isMore) => {
      const reach = isMore && !reachable();
      attribute(box, "tabindex", reach ? "0" : null);
      if (label) {
        attribute(box, "role", reach ? "group" : null);
        attribute(box, "aria-label", reach ? label() : null);
      }
    };
    const settle = () => measured(say, more, say);
    scrollers.add(box);
    const watch = new ResizeObserver(settle);
    watch.observe(box);
    watch.observe(inside);
    return settle;
  }

  // A frame around a box that scrolls, which shows at what edges of it there is more (edges.css).
  function edged(box) {
    const frame = make("div", "edged");
    frame.append(box);
    return frame;
  }

  // Scroll `box`, and only it, so that `node` shows.
  function reveal(box, node) {
    const outer = box.getBoundingClientRect();
    const inner = node.getBoundingClientRect();
    const head = box.querySelector("thead");
    const top = outer.top + (head ? head.offsetHeight : 0);
    if (inner.top < top) box.scrollTop -= top - inner.top + 6;
    else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + 6;
    if (inner.width > outer.width) return;
    if (inner.left < outer.left) box.scrollLeft -= outer.left - inner.left + 12;
    else if (inner.right > outer.right) box.scrollLeft += inner.right - outer.right + 12;
  }

  // Whether a person has marked text of this node: the click that ends the marking picks nothing.
  function marked(node) {
    const selection = window.getSelection();
    return !selection.isCollapsed && selection.containsNode(node, true);
  }

  // Arrow keys among `nodes()`, one of which Tab reaches; Enter, space or a click picks.
  function roving(box, selector, nodes, pick) {
    let stop = null;
    const settle = (node) => {
      if (stop && stop !== node) stop.tabIndex = -1;
      stop = node;
      if (stop) stop.tabIndex = 0;
    };
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    box.addEventListener("click", (event) => {
      const node = event.target.closest(selector);
      if (!node || !box.contains(node) || marked(node)) return;
      settle(node);
      pick(node);
    });
    box.addEventListener("keydown", (event) => {
      const node = event.target.closest(selector);
      if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Enter" || event.key === " ") pick(node);
      else if (event.key in moves) {
        const all = nodes();
        const place = Math.min(Math.max(all.indexOf(node) + moves[event.key], 0), all.length - 1);
        settle(all[place]);
        all[place].focus({ preventScroll: true });
        reveal(box, all[place]);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    // After each update: the reachable one must still be there.
    return (preferred) => {
      if (preferred && document.activeElement !== stop) settle(preferred);
      else if (!stop || !stop.isConnected) settle(nodes()[0] || null);
    };
  }

  // Whether all stands in one column; and how to scroll, at once where less motion is asked for.
  const narrow = () => window.matchMedia("(max-width: 900px)").matches;
  const motion = () => (window.matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");

  // Call `draw` whenever gradio switches between light and dark, which it does by a class of the body.
  function onTheme(node, draw) {
    themed.add({ node, draw });
  }
  const redraw = () => {
    for (const entry of themed) {
      if (entry.node.isConnected) entry.draw();
      else themed.delete(entry);
    }
  };
  new MutationObserver(redraw).observe(document.body, { attributes: true, attributeFilter: ["class"] });

  return { views, mount, setStates, make, attribute, unpack, list, tokenText, room, measured, scrolls, scrolling, edged, reveal, roving, narrow, motion, onTheme };
})();
