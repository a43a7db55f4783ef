// The page: the field of words with completions, the answers, and the map.

const NEIGHBORS = 20, COMPLETIONS = 8, GROUPS = 60;
const byId = (id) => document.getElementById(id);

/** Return an element with text and children. */
function make(kind, attributes, ...children) {
  const element = document.createElement(kind);
  Object.assign(element, attributes);
  element.append(...children);
  return element;
}

class App {
  constructor(tables) {
    this.tables = tables;
    this.shown = 0;
    this.field = byId("query");
    this.list = byId("completions");
    this.map = new WordMap(byId("map"), (name) => this.ask(name));
    byId("answers").classList.toggle("two", tables.length > 1);
    if (!tables[0].ofWords) this.field.placeholder = "the start of a document";
    this.tools();
    this.listen();
    this.showOnMap(0);
    this.follow();
    if (!this.text) this.field.focus({ preventScroll: true });
  }

  /** Answer the query of the address, or show the start without one. */
  follow() {
    let text = location.hash.slice(1);
    try { text = decodeURIComponent(text); } catch { /* typed by hand: as it is */ }
    if (text === this.text) return;
    if (text) this.ask(text);
    else this.start();
  }

  /** Show what the files are, examples to click and the groups of the map. */
  start() {
    [this.text, this.last, this.field.value] = ["", null, ""];
    this.map.mark([], new Set());
    this.map.all();
    byId("fit").hidden = true;
    const boxes = this.tables.map((table, number) => {
      const box = make("div", { className: "answer" }, make("h2", { textContent: table.title }));
      box.append(make("p", { className: "note", textContent: table.about }));
      if (table.examples.length) box.append(make("h3", { textContent: "Try" }));
      box.append(make("p", { className: "examples" }, ...table.examples.map((text) =>
        make("button", { type: "button", textContent: text, onclick: () => this.ask(text) }))));
      const groups = table.labels.filter(([words, , level]) => level === 0 && words.length);
      if (groups.length) box.append(make("h3", { textContent: table.given ? "Groups" : "Groups of similar words" }));
      box.append(make("ol", { className: "groups" }, ...groups.slice(0, GROUPS).map((label) => this.groupItem(number, label))));
      return box;
    });
    if (this.tables[0].changes.length) boxes.push(this.changes());
    byId("answers").replaceChildren(...boxes);
  }

  /** Return the words that the files use most differently, to be sorted. */
  changes() {
    const orders = {
      "unusual first": () => 0,
      "largest change": ([, one], [, other]) => other - one,
      "A–Z": ([one], [other]) => one.localeCompare(other),
    };
    const list = make("ol", {});
    const sort = (order) => list.replaceChildren(...[...this.tables[0].changes].sort(order).map(([word, change, ...near]) =>
      this.item(word, change, make("span", { className: "near", textContent: near.join(" → ") }))));
    sort(orders["unusual first"]);
    return make("div", { className: "changes" }, make("h3", { textContent: "Words that the files use differently" }),
      make("p", { className: "examples" }, ...Object.entries(orders).map(([textContent, order]) =>
        make("button", { type: "button", textContent, onclick: () => sort(order) }))), list);
  }

  /** Return a word with a number as a button that asks for it. */
  item(name, number, ...more) {
    const button = make("button", { type: "button", onclick: () => this.ask(name) },
      make("span", { className: "word", textContent: name }), ...more,
      make("span", { className: "cosine", textContent: number.toFixed(3) }));
    return make("li", {}, button);
  }

  /** Return a group as a button that shows it alone on the map. */
  groupItem(number, [words, , , color]) {
    const mark = make("span", { className: "mark", textContent: "● " });
    mark.style.color = colorsNow()[color];
    const button = make("button", { type: "button", onclick: () => this.showGroup(number, color) },
      make("span", { className: "word" }, mark, words.join(", ") || "(none)"));
    return make("li", {}, button);
  }

  showGroup(number, color) {
    if (number !== this.shown) this.showOnMap(number);
    const { groups } = this.tables[number];
    const rows = [];
    groups.forEach((group, row) => { if (group === color) rows.push(row); });
    this.map.mark([], new Set(), this.map.group === color ? -1 : color);
    if (this.map.group < 0) this.map.all();
    else this.map.fit(rows.slice(0, 2000));
  }

  tools() {
    byId("in").onclick = () => this.map.zoom(1.6);
    byId("out").onclick = () => this.map.zoom(1 / 1.6);
    byId("all").onclick = () => this.map.all();
    byId("fit").onclick = () => this.map.fit(this.map.hits);
    if (this.tables.length < 2) return;
    this.tables.forEach((table, number) => {
      byId("which").append(make("button", { type: "button", textContent: table.title, onclick: () => this.showOnMap(number) }));
    });
  }

  showOnMap(number) {
    this.shown = number;
    [...byId("which").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    this.map.show(this.tables[number]);
    if (this.last) this.markHits();
  }

  /** Answer a query in every table and on the map; the address keeps it for Back and bookmarks. */
  ask(text) {
    this.text = this.field.value = text;
    this.close();
    location.hash = encodeURIComponent(text);
    if (!text.trim()) return this.start();
    this.last = this.tables.map((table) => answer(text, table, NEIGHBORS));
    const columns = this.last.map((one, number) => this.column(one, this.tables[number]));
    const back = make("button", { type: "button", id: "start", textContent: "← examples", onclick: () => this.ask("") });
    byId("answers").replaceChildren(back, ...columns);
    byId("answers").scrollTop = 0;
    this.markHits();
    byId("fit").hidden = false;
  }

  markHits() {
    const { near, rows } = this.last[this.shown];
    const hits = [...rows, ...near.map((item) => item.row)];
    this.map.mark(hits, new Set(rows));
    if (hits.length && this.map.misses(hits)) this.map.fit(hits);
  }

  /** Return the answer of one table as elements. */
  column(found, table) {
    const box = make("div", { className: "answer" });
    if (this.tables.length > 1) box.append(make("h2", { textContent: table.title }));
    for (const note of found.notes) box.append(make("p", { className: "note", textContent: note }));
    const items = found.near.map(({ row, cosine }) => this.item(table.names[row], cosine));
    box.append(make("ol", {}, ...items));
    return box;
  }

  // ---- completions ----

  /** Return the sign and the letters of the last word of the field. */
  lastWord() {
    if (!this.tables[0].ofWords) return { before: "", word: this.field.value };
    const [, before, sign, word] = /^(.*?)([+-]?)(\S*)$/s.exec(this.field.value);
    return { before: before + sign, word };
  }

  complete() {
    const { word } = this.lastWord();
    const names = new Set(word ? this.tables.flatMap((table) => table.starting(word, COMPLETIONS)) : []);
    const found = [...names].slice(0, COMPLETIONS);
    this.list.replaceChildren(...found.map((name, number) => {
      const item = make("li", { textContent: name, id: `completion${number}`, role: "option" });
      item.onpointerdown = (event) => { event.preventDefault(); this.take(name); this.ask(this.field.value); };
      return item;
    }));
    this.list.hidden = !found.length || (found.length === 1 && found[0] === word);
    this.field.setAttribute("aria-expanded", String(!this.list.hidden));
    this.field.removeAttribute("aria-activedescendant");
    this.chosen = -1;
  }

  choose(step) {
    const items = [...this.list.children];
    if (this.list.hidden || !items.length) return;
    this.chosen = (this.chosen + step + items.length) % items.length;
    items.forEach((item, number) => item.setAttribute("aria-selected", String(number === this.chosen)));
    this.field.setAttribute("aria-activedescendant", items[this.chosen].id);
  }

  take(name) {
    this.field.value = this.lastWord().before + name;
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.chosen = -1;
    this.field.setAttribute("aria-expanded", "false");
  }

  listen() {
    window.addEventListener("hashchange", () => this.follow());
    dark.addEventListener("change", () => { if (!this.last) this.start(); });
    this.field.addEventListener("input", () => this.complete());
    this.field.addEventListener("blur", () => this.close());
    this.field.addEventListener("keydown", (event) => {
      const open = !this.list.hidden;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        this.choose(event.key === "ArrowDown" ? 1 : -1);
      } else if (event.key === "Tab" && open && !event.shiftKey) {
        event.preventDefault();
        this.take(this.list.children[Math.max(0, this.chosen)].textContent);
      } else if (event.key === "Enter") {
        if (open && this.chosen >= 0) this.take(this.list.children[this.chosen].textContent);
        this.ask(this.field.value);
      } else if (event.key === "Escape") {
        this.close();
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || document.activeElement === this.field) return;
      event.preventDefault();
      this.field.focus();
      this.field.select();
    });
  }
}

readTables().then((tables) => {
  window.app = new App(tables); // for tests and the curious
  document.body.dataset.ready = "yes";
}).catch((error) => {
  byId("answers").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
});
