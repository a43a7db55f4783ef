// The page: the field of words with completions, the answers, and the map.

const NEIGHBOURS = 20, COMPLETIONS = 8;
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
    this.tools();
    this.showOnMap(0);
    this.listen();
    const total = tables.map((table) => `${table.title}: ${table.rows.toLocaleString("en")} × ${table.dim}`);
    byId("status").textContent = total.join("; ");
    if (location.hash.length > 1) this.ask(decodeURIComponent(location.hash.slice(1)));
    else this.field.focus({ preventScroll: true });
  }

  tools() {
    byId("in").onclick = () => this.map.zoom(1.6);
    byId("out").onclick = () => this.map.zoom(1 / 1.6);
    byId("all").onclick = () => this.map.all();
    if (this.tables.length < 2) return;
    this.tables.forEach((table, number) => {
      byId("which").append(make("button", { type: "button", textContent: table.title, onclick: () => this.showOnMap(number) }));
    });
  }

  showOnMap(number) {
    this.shown = number;
    [...byId("which").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    const { legend } = this.tables[number];
    byId("legend").replaceChildren(...legend.map((name, i) => {
      const mark = make("span", { textContent: "■ " });
      mark.style.color = COLOURS[i];
      return make("li", {}, mark, name || "(none)");
    }));
    this.map.show(this.tables[number]);
    if (this.last) this.markHits();
  }

  /** Answer a query in every table and on the map. */
  ask(text) {
    this.field.value = text;
    this.close();
    this.last = this.tables.map((table) => answer(text, table, NEIGHBOURS));
    const columns = this.last.map((one, number) => this.column(one, this.tables[number]));
    byId("answers").replaceChildren(byId("status"), ...columns);
    this.markHits();
    history.replaceState(null, "", `#${encodeURIComponent(text)}`);
  }

  markHits() {
    const { near, rows } = this.last[this.shown];
    const hits = [...rows, ...near.map((item) => item.row)];
    this.map.mark(hits, new Set(rows));
    this.map.reveal(rows.length ? rows : hits);
  }

  /** Return the answer of one table as elements. */
  column(found, table) {
    const box = make("div", { className: "answer" });
    if (this.tables.length > 1) box.append(make("h2", { textContent: table.title }));
    for (const note of found.notes) box.append(make("p", { className: "note", textContent: note }));
    const items = found.near.map(({ row, cosine }) => {
      const name = table.names[row];
      const button = make("button", { type: "button", onclick: () => this.ask(name) },
        make("span", { className: "word", textContent: name }),
        make("span", { className: "cosine", textContent: cosine.toFixed(3) }));
      return make("li", {}, button);
    });
    box.append(make("ol", {}, ...items));
    return box;
  }

  // ---- completions ----

  /** Return the sign and the letters of the last word of the field. */
  lastWord() {
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
  byId("status").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
});
