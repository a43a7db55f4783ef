// The map: all points on a canvas, to pan and zoom, with labels that appear as one comes nearer.

const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8A7A00", "#888888"];
const EXTENT = 32767; // of coordinates
const LABELS = 400; // at most on the screen
const CELL = 13, LINE = 8; // pixels; at most one label is in a cell

class WordMap {
  constructor(canvas, onPick) {
    this.canvas = canvas;
    this.onPick = onPick;
    this.pen = canvas.getContext("2d");
    this.hits = [];
    this.hover = -1;
    this.centre = [0, 0];
    this.scale = 1; // pixels for one unit of a coordinate
    this.frame = 0;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  /** Show a table; the view stays if one was shown before. */
  show(table) {
    const first = !this.table;
    this.table = table;
    this.hits = [];
    if (first) this.resize();
    this.draw();
  }

  /** Mark rows, the first of which are of the query. */
  mark(rows, ofQuery) {
    this.hits = rows;
    this.ofQuery = ofQuery;
    this.draw();
  }

  /** Move so that rows are in view. */
  reveal(rows) {
    const out = rows.filter((row) => {
      const [x, y] = this.place(row);
      return x < 20 || y < 20 || x > this.width - 20 || y > this.height - 20;
    });
    if (!rows.length || !out.length) return;
    const { points } = this.table;
    const [x, y] = [points[2 * rows[0]], points[2 * rows[0] + 1]];
    this.centre = [x, y];
    this.draw();
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const before = Math.min(this.width || 0, this.height || 0);
    [this.width, this.height] = [box.width, box.height];
    [this.canvas.width, this.canvas.height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const after = Math.min(box.width, box.height);
    this.scale = before ? (this.scale * after) / before : this.fitting();
    this.draw();
  }

  fitting() {
    return (Math.min(this.width, this.height) / 2 - 12) / EXTENT;
  }

  all() {
    this.centre = [0, 0];
    this.scale = this.fitting();
    this.draw();
  }

  /** Zoom by a factor; what is at (x, y) stays there. */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const old = this.scale;
    this.scale = Math.min(Math.max(old * factor, this.fitting() / 2), this.fitting() * 2000);
    const change = 1 / old - 1 / this.scale;
    this.centre[0] += (x - this.width / 2) * change;
    this.centre[1] -= (y - this.height / 2) * change;
    this.draw();
  }

  pan(dx, dy) {
    this.centre[0] -= dx / this.scale;
    this.centre[1] += dy / this.scale;
    this.draw();
  }

  place(row) {
    const { points } = this.table;
    return [
      this.width / 2 + (points[2 * row] - this.centre[0]) * this.scale,
      this.height / 2 - (points[2 * row + 1] - this.centre[1]) * this.scale,
    ];
  }

  /** Return the row nearest to a position within some pixels, -1 if there is none. */
  at(x, y) {
    let found = -1, least = 144;
    for (let row = 0; row < this.table.rows; row++) {
      const [px, py] = this.place(row);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [found, least] = [row, distance];
    }
    return found;
  }

  draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
  }

  paint() {
    if (!this.table || !this.width) return;
    const { table } = this;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const inView = this.points(table.legend.length ? COLOURS : [colour("--point")], colour("--back"));
    const room = new Room(this.width, this.height);
    const rows = this.hover >= 0 ? [this.hover, ...this.hits] : this.hits;
    this.marked = rows.map((row, number) => {
      const [x, y] = this.place(row);
      const free = room.take(x, y, 8 * short(table.names[row]).length + 12);
      return { row, x, y, named: free || (number === 0 && this.hover >= 0) };
    });
    this.pen.textBaseline = "middle";
    this.labels(inView, room, colour);
    this.marks(colour);
  }

  /** Draw all points in view, pixel by pixel; return their rows, most frequent first. */
  points(colours, back) {
    const { canvas, table } = this;
    const grouped = table.legend.length > 0;
    const ratio = canvas.width / this.width, scale = this.scale * ratio;
    const size = Math.round(ratio * Math.min(5, Math.max(2, 1.2 * Math.sqrt(this.scale / this.fitting()))));
    const left = this.centre[0] - canvas.width / 2 / scale, top = this.centre[1] + canvas.height / 2 / scale;
    const image = this.pen.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer).fill(pixelOf(back));
    const values = colours.map(pixelOf);
    const inView = [];
    for (let row = 0; row < table.rows; row++) {
      const x = Math.round((table.points[2 * row] - left) * scale - size / 2);
      const y = Math.round((top - table.points[2 * row + 1]) * scale - size / 2);
      if (x < 0 || y < 0 || x + size > canvas.width || y + size > canvas.height) continue;
      const value = values[grouped ? table.groups[row] : 0];
      for (let line = 0, at = y * canvas.width + x; line < size; line++, at += canvas.width) {
        pixels.fill(value, at, at + size);
      }
      inView.push(row);
    }
    this.pen.putImageData(image, 0, 0);
    return inView;
  }

  /** Label the most frequent words in view that have room. */
  labels(rows, room, colour) {
    const { pen } = this;
    const most = Math.min(LABELS, (this.width * this.height) / 3500);
    pen.font = "11px system-ui, sans-serif";
    let drawn = 0;
    for (const row of rows) {
      if (drawn >= most) break;
      const [x, y] = this.place(row);
      const name = short(this.table.names[row]);
      if (!room.take(x, y, 6 * name.length + 8)) continue;
      this.text(name, x + 4, y, colour("--front"), colour("--halo"));
      drawn++;
    }
  }

  /** Mark hits by rings, and by their names where there is room. */
  marks(colour) {
    const { pen } = this;
    for (const { row, x, y, named } of this.marked) {
      pen.strokeStyle = pen.fillStyle = this.ofQuery && this.ofQuery.has(row) ? colour("--accent") : colour("--hit");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, 5, 0, 2 * Math.PI);
      pen.stroke();
      pen.font = "600 13px system-ui, sans-serif";
      if (named) this.text(short(this.table.names[row]), x + 8, y, pen.fillStyle, colour("--halo"));
    }
  }

  text(text, x, y, colour, halo) {
    const { pen } = this;
    pen.lineWidth = 3;
    pen.strokeStyle = halo;
    pen.strokeText(text, x, y);
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }

  listen() {
    const { canvas } = this;
    const held = new Map();
    let moved = 0;
    const where = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, where(event));
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = where(event), before = held.get(event.pointerId);
      if (!before) {
        const over = this.table ? this.at(...now) : -1;
        if (over !== this.hover) { this.hover = over; this.draw(); }
        return;
      }
      const other = [...held].find(([id]) => id !== event.pointerId);
      if (other) {
        const apart = (point) => Math.hypot(point[0] - other[1][0], point[1] - other[1][1]) || 1;
        this.zoom(apart(now) / apart(before), (now[0] + other[1][0]) / 2, (now[1] + other[1][1]) / 2);
      } else {
        this.pan(now[0] - before[0], now[1] - before[1]);
      }
      moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      held.set(event.pointerId, now);
    });
    const release = (event) => {
      if (held.delete(event.pointerId) && event.type === "pointerup" && moved < 5 && this.table) {
        const row = this.at(...where(event));
        if (row >= 0) this.onPick(this.table.names[row]);
      }
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => { this.hover = -1; this.draw(); });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), ...where(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 60, keys = {
        ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0),
        ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
        "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.all(),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }
}

/** The places on the map that labels have taken. */
class Room {
  constructor(width, height) {
    this.wide = Math.ceil(width / CELL) + 1;
    this.high = Math.ceil(height / LINE) + 2;
    this.taken = new Uint8Array(this.wide * this.high);
  }

  /** Take the place of a label of some width from (x, y); return whether it was free. */
  take(x, y, width) {
    const first = Math.floor(x / CELL), last = Math.min(Math.floor((x + width) / CELL), this.wide - 1);
    const upper = Math.floor(y / LINE), lower = upper + 1; // a label touches two lines
    if (first < 0 || first > last || upper < 0 || lower >= this.high) return false;
    const cells = [upper, lower].map((line) => this.taken.subarray(line * this.wide + first, line * this.wide + last + 1));
    if (cells.some((part) => part.includes(1))) return false;
    cells.forEach((part) => part.fill(1));
    return true;
  }
}

/** Return a name that is not too long for a label. */
function short(name) {
  return name.length > 32 ? `${name.slice(0, 31)}…` : name;
}

/** Return a colour such as #0072B2 as a pixel of a canvas. */
function pixelOf(hex) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return new Uint32Array(new Uint8ClampedArray([red, green, blue, 255]).buffer)[0];
}
