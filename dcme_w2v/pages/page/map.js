// The map: all points on a canvas, to pan and zoom. Groups have labels, words appear as one comes nearer.

const LIGHT = ["#1f6fb4", "#c2541a", "#2e8540", "#b3263a", "#7a4fb0", "#8a6500", "#0f7f86", "#b03a86", "#5b6b1f",
  "#4858c8", "#8c4a2f", "#6b6b6b"];
const DARK = ["#6db7ee", "#ff9f5a", "#6fcf84", "#ff7b87", "#b99af0", "#e0bd4a", "#4fd0d6", "#f08ccb", "#b3c65a",
  "#95a3ff", "#d99a7a", "#a5a5a5"];
const EXTENT = 32767; // of coordinates
const LABELS = 400; // at most on the screen
const CELL = 13, LINE = 8; // pixels; at most one label is in a cell
const ZOOMS = [2, 5, Infinity]; // up to which the groups of a level have labels
const NEAR = 2; // zoom from which words have labels
const CLASSES = 6; // of frequency: the size and opacity of a point
const DIMMED = 0.15; // opacity of all but the answer

/** Return whether the page is dark. */
const dark = matchMedia("(prefers-color-scheme: dark)");
const colorsNow = () => (dark.matches ? DARK : LIGHT);

class WordMap {
  constructor(canvas, onPick) {
    this.canvas = canvas;
    this.onPick = onPick;
    this.pen = canvas.getContext("2d");
    this.hits = [];
    this.ofQuery = new Set();
    this.group = -1; // the one that is shown alone
    this.hover = -1;
    this.center = [0, 0];
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

  /** Mark rows, also the rows of the query; or no rows; or a group. */
  mark(rows, ofQuery, group = -1) {
    this.hits = rows;
    this.ofQuery = ofQuery;
    this.group = group;
    this.draw();
  }

  /** Return whether some rows are out of view, or all in a small part of it. */
  misses(rows) {
    const [left, low, right, high] = boxOf(rows.map((row) => this.place(row)));
    const out = left < 20 || low < 20 || right > this.width - 20 || high > this.height - 20;
    return out || (right - left < this.width / 2.5 && high - low < this.height / 2.5);
  }

  /** Move and zoom so that rows fill the view. */
  fit(rows) {
    if (!rows.length) return;
    const { points } = this.table;
    const [left, low, right, high] = boxOf(rows.map((row) => [points[2 * row], points[2 * row + 1]]));
    this.center = [(left + right) / 2, (low + high) / 2];
    const wanted = Math.min((0.72 * this.width) / (right - left || 1), (0.8 * this.height) / (high - low || 1));
    this.scale = Math.min(wanted, this.fitting() * 12);
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
    this.center = [0, 0];
    this.scale = this.fitting();
    this.draw();
  }

  /** Zoom by a factor; the point at (x, y) stays there. */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const old = this.scale;
    this.scale = Math.min(Math.max(old * factor, this.fitting() / 2), this.fitting() * 2000);
    const change = 1 / old - 1 / this.scale;
    this.center[0] += (x - this.width / 2) * change;
    this.center[1] -= (y - this.height / 2) * change;
    this.draw();
  }

  pan(dx, dy) {
    this.center[0] -= dx / this.scale;
    this.center[1] += dy / this.scale;
    this.draw();
  }

  place(row) {
    const { points } = this.table;
    return [
      this.width / 2 + (points[2 * row] - this.center[0]) * this.scale,
      this.height / 2 - (points[2 * row + 1] - this.center[1]) * this.scale,
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
    const { table, pen } = this;
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const zoom = this.scale / this.fitting(), answered = this.hits.length > 0;
    const inView = this.points(color("--back"));
    const room = new Room(this.width, this.height);
    const rows = this.hover >= 0 ? [this.hover, ...this.hits] : this.hits;
    pen.font = "600 13px system-ui, sans-serif";
    this.marked = rows.map((row, number) => {
      const [x, y] = this.place(row);
      const free = room.take(x, y, pen.measureText(short(table.names[row])).width + 12);
      return { row, x, y, named: free || (number === 0 && this.hover >= 0) };
    });
    pen.textBaseline = "middle";
    if (!answered) this.groupLabels(zoom, room, color("--halo"));
    const near = zoom >= NEAR || !table.labels.length;
    if (near && !answered && table.ofWords) this.labels(inView, room, color);
    this.lines(color("--hit"));
    this.marks(color);
  }

  /** Draw the points in view, rare ones first; return their rows, most frequent first. */
  points(back) {
    const { canvas, table } = this;
    const ratio = canvas.width / this.width, scale = this.scale * ratio;
    const grow = ratio * Math.min(3, Math.max(1, Math.sqrt(this.scale / this.fitting())));
    const left = this.center[0] - canvas.width / 2 / scale, top = this.center[1] + canvas.height / 2 / scale;
    const image = this.pen.createImageData(canvas.width, canvas.height);
    new Uint32Array(image.data.buffer).fill(pixelOf(back));
    const values = colorsNow().map(partsOf), answered = this.hits.length > 0;
    const discs = Array.from({ length: CLASSES }, (_, i) => discOf(grow * (2 + i * 0.9), 0.45 + 0.09 * i));
    const inView = [];
    for (let row = table.rows - 1; row >= 0; row--) {
      const disc = discs[table.ofWords ? this.frequency(row) : 2];
      const x = Math.round((table.points[2 * row] - left) * scale - disc.size / 2);
      const y = Math.round((top - table.points[2 * row + 1]) * scale - disc.size / 2);
      if (x < 0 || y < 0 || x + disc.size > canvas.width || y + disc.size > canvas.height) continue;
      const dim = answered || (this.group >= 0 && table.groups[row] !== this.group);
      blend(image, x, y, disc, values[table.groups[row]], dim ? DIMMED : 1);
      inView.push(row);
    }
    this.pen.putImageData(image, 0, 0);
    return inView.reverse();
  }

  /** Return the class of a word's frequency by its rank: counts fall as 1 / rank. */
  frequency(row) {
    return Math.floor((CLASSES - 0.01) * (1 - Math.log1p(row) / Math.log1p(this.table.rows)));
  }

  /** Label the groups of the present level of zoom, the coarser ones first. */
  groupLabels(zoom, room, halo) {
    const { table, pen } = this;
    const level = Math.min(ZOOMS.findIndex((most) => zoom < most), table.deepest);
    const colors = colorsNow();
    for (const [words, row, own, color] of table.labels) {
      if ((own !== level && !table.given) || !words.length) continue;
      if (this.group >= 0 && table.groups[row] !== this.group) continue;
      const [x, y] = this.place(row);
      if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
      const text = words.slice(0, this.width < 600 ? 2 : 3).map(short).join(", ");
      pen.font = `600 ${this.width < 600 ? 13 : 15 - own}px system-ui, sans-serif`;
      const width = pen.measureText(text).width;
      const from = Math.min(Math.max(x - width / 2, 4), Math.max(4, this.width - width - 4));
      if (room.take(from, y, width, 18)) this.text(text, from, y, colors[color], halo);
    }
  }

  /** Label the most frequent words in view that have room. */
  labels(rows, room, color) {
    const { pen } = this;
    const most = Math.min(LABELS, (this.width * this.height) / 3500);
    pen.font = "11px system-ui, sans-serif";
    let drawn = 0;
    for (const row of rows) {
      if (drawn >= most) break;
      if (this.group >= 0 && this.table.groups[row] !== this.group) continue;
      const [x, y] = this.place(row);
      const name = short(this.table.names[row]);
      if (!room.take(x, y, pen.measureText(name).width + 8)) continue;
      this.text(name, x + 4, y, color("--front"), color("--halo"));
      drawn++;
    }
  }

  /** Join each hit to the word of the query that is nearest on the map. */
  lines(color) {
    const { pen } = this;
    const from = this.hits.filter((row) => this.ofQuery.has(row)).map((row) => this.place(row));
    if (!from.length) return;
    pen.strokeStyle = color;
    pen.globalAlpha = 0.45;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const row of this.hits) {
      if (this.ofQuery.has(row)) continue;
      const [x, y] = this.place(row);
      const apart = from.map((point) => Math.hypot(point[0] - x, point[1] - y));
      pen.moveTo(...from[apart.indexOf(Math.min(...apart))]);
      pen.lineTo(x, y);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /** Mark hits by rings, and by their names where there is room. */
  marks(color) {
    const { pen } = this;
    for (const { row, x, y, named } of this.marked) {
      pen.strokeStyle = pen.fillStyle = this.ofQuery.has(row) ? color("--accent") : color("--hit");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, 4, 0, 2 * Math.PI);
      pen.fill();
      pen.font = "600 13px system-ui, sans-serif";
      if (named) this.text(short(this.table.names[row]), x + 8, y, pen.fillStyle, color("--halo"));
    }
  }

  text(text, x, y, color, halo) {
    const { pen } = this;
    pen.lineWidth = 3;
    pen.strokeStyle = halo;
    pen.strokeText(text, x, y);
    pen.fillStyle = color;
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
        f: () => this.fit(this.hits),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    dark.addEventListener("change", () => this.draw());
  }
}

/** The places on the map that labels have taken. */
class Room {
  constructor(width, height) {
    this.wide = Math.ceil(width / CELL) + 1;
    this.high = Math.ceil(height / LINE) + 2;
    this.taken = new Uint8Array(this.wide * this.high);
  }

  /** Take the place of a label that starts at x, with its middle at y; return whether it was free. */
  take(x, y, width, height = 12) {
    const first = Math.floor(x / CELL), last = Math.min(Math.floor((x + width) / CELL), this.wide - 1);
    const upper = Math.floor((y - height / 2) / LINE), lower = Math.floor((y + height / 2) / LINE);
    if (first < 0 || first > last || upper < 0 || lower >= this.high) return false;
    const cells = [];
    for (let line = upper; line <= lower; line++) {
      cells.push(this.taken.subarray(line * this.wide + first, line * this.wide + last + 1));
    }
    if (cells.some((part) => part.includes(1))) return false;
    cells.forEach((part) => part.fill(1));
    return true;
  }
}

/** Return a name that is not too long for a label. */
function short(name) {
  return name.length > 32 ? `${name.slice(0, 31)}…` : name;
}

/** Return the red, green and blue of a color such as #1f6fb4. */
function partsOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** Return a color as a pixel of a canvas. */
function pixelOf(hex) {
  return new Uint32Array(new Uint8ClampedArray([...partsOf(hex), 255]).buffer)[0];
}

/** Return a disc as the opacity of each of its pixels. */
function discOf(width, opacity) {
  const size = Math.ceil(width), middle = (size - 1) / 2, alpha = new Float32Array(size * size);
  for (let i = 0; i < alpha.length; i++) {
    const apart = Math.hypot((i % size) - middle, Math.floor(i / size) - middle);
    alpha[i] = opacity * Math.min(1, Math.max(0, width / 2 + 0.5 - apart));
  }
  return { size, alpha };
}

/** Blend a disc of a color into an image. */
function blend(image, x, y, disc, [red, green, blue], opacity) {
  const { data, width } = image, { size, alpha } = disc;
  for (let line = 0, i = 0; line < size; line++) {
    let at = 4 * ((y + line) * width + x);
    for (let column = 0; column < size; column++, i++, at += 4) {
      const share = alpha[i] * opacity;
      data[at] += (red - data[at]) * share;
      data[at + 1] += (green - data[at + 1]) * share;
      data[at + 2] += (blue - data[at + 2]) * share;
    }
  }
}

/** Return the least and greatest coordinates of points. */
function boxOf(points) {
  const [x, y] = [points.map((point) => point[0]), points.map((point) => point[1])];
  return [Math.min(...x), Math.min(...y), Math.max(...x), Math.max(...y)];
}
