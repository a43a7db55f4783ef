// Questions about words, as `dcme-w2v neighbors` answers them.

/** Words or documents of one file, with their int8 vectors. */
class Table {
  constructor(about, names, arrays) {
    Object.assign(this, about, arrays, { names });
    this.groups = arrays.groups;
    this.deepest = Math.max(0, ...about.labels.map((label) => label[2]));
    this.index = new Map(names.map((name, row) => [name, row]));
    this.inverse = new Float32Array(this.rows);
    for (let row = 0; row < this.rows; row++) {
      const sum = this.squares(row);
      this.inverse[row] = sum > 0 ? 1 / Math.sqrt(sum) : 0;
    }
  }

  squares(row) {
    let sum = 0;
    for (let i = row * this.dim; i < (row + 1) * this.dim; i++) sum += this.vectors[i] ** 2;
    return sum;
  }

  /** Return the sum of unit vectors of rows, each with its sign. */
  sum(terms) {
    const total = new Float32Array(this.dim);
    for (const { row, sign } of terms) {
      const factor = sign * this.inverse[row];
      for (let i = 0; i < this.dim; i++) total[i] += factor * this.vectors[row * this.dim + i];
    }
    return total;
  }

  /** Return the `count` rows nearest to the sum of terms, without the terms. */
  nearest(terms, count) {
    const query = this.sum(terms);
    const length = Math.hypot(...query) || 1;
    const left = new Set(terms.map((term) => term.row));
    const best = [];
    let least = -Infinity;
    for (let row = 0, at = 0; row < this.rows; row++, at += this.dim) {
      let dot = 0;
      for (let i = 0; i < this.dim; i++) dot += query[i] * this.vectors[at + i];
      const cosine = (dot * this.inverse[row]) / length;
      if (cosine <= least || left.has(row)) continue;
      let place = best.length;
      while (place > 0 && best[place - 1].cosine < cosine) place--;
      best.splice(place, 0, { row, cosine });
      if (best.length > count) best.pop();
      if (best.length === count) least = best[count - 1].cosine;
    }
    return best;
  }

  /** Return the cosine of two rows. */
  cosine(one, other) {
    let dot = 0;
    for (let i = 0; i < this.dim; i++) dot += this.vectors[one * this.dim + i] * this.vectors[other * this.dim + i];
    return dot * this.inverse[one] * this.inverse[other];
  }

  /** Return the row with the lowest cosine to the mean of rows. */
  oddOne(rows) {
    const mean = this.sum(rows.map((row) => ({ row, sign: 1 })));
    const scores = rows.map((row) => {
      let dot = 0;
      for (let i = 0; i < this.dim; i++) dot += mean[i] * this.vectors[row * this.dim + i];
      return dot * this.inverse[row];
    });
    return rows[scores.indexOf(Math.min(...scores))];
  }

  /** Return the row of a word, also with another case. */
  find(word) {
    const found = this.index.get(word);
    return found === undefined ? this.index.get(word.toLowerCase()) : found;
  }

  /** Return names that start with a text, most frequent first. */
  starting(text, count) {
    const found = [];
    for (const name of this.names) {
      if (name.startsWith(text) && found.push(name) === count) break;
    }
    return found;
  }
}

/** Return the terms of a query, and the words that are not in a table. */
function parse(text, table) {
  const whole = table.find(text.trim());
  if (whole !== undefined) return { terms: [{ row: whole, sign: 1, signed: false }], missing: [] };
  const terms = [], missing = [];
  for (const word of text.trim().split(/\s+/).filter(Boolean)) {
    const signed = word.length > 1 && "+-".includes(word[0]) && table.index.get(word) === undefined;
    const name = signed ? word.slice(1) : word;
    const row = table.find(name);
    if (row === undefined) missing.push(name);
    else terms.push({ row, sign: signed && word[0] === "-" ? -1 : 1, signed });
  }
  return { terms, missing };
}

/** Answer a query of one table: notes, and the nearest rows. */
function answer(text, table, count) {
  const { terms, missing } = parse(text, table);
  const notes = missing.length ? [`no vector for ${missing.join(", ")}`] : [];
  const rows = terms.map((term) => term.row);
  const names = rows.map((row) => table.names[row]);
  if (!terms.length) return { notes, near: [], rows };
  if (terms.some((term) => term.signed) || terms.length === 1) {
    return { notes, near: missing.length && terms.some((term) => term.signed) ? [] : table.nearest(terms, count), rows };
  }
  if (terms.length === 2) notes.push(`cosine ${table.cosine(rows[0], rows[1]).toFixed(3)}`);
  else notes.push(`odd one out: ${table.names[table.oddOne(rows)]}`);
  if (terms.length === 3) {
    notes.unshift(`${names[0]} is to ${names[1]} as ${names[2]} is to`);
    terms[0].sign = -1;
  }
  return { notes, near: table.nearest(terms, count), rows };
}
