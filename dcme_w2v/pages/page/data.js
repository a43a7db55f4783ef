"use strict";
// Blocks of data in the page: gzip, base64. All text in them is shown as text, never as HTML.

/** Return the bytes of a block. */
async function bytesOf(id) {
  const block = document.getElementById(id);
  const text = atob(block.textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  block.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Return the value of a block of JSON. */
async function jsonOf(id) {
  return JSON.parse(new TextDecoder().decode(await bytesOf(id)));
}

/** Return the tables of the page: names, int8 vectors, points of the map, groups. */
async function readTables() {
  const about = await jsonOf("about");
  return Promise.all(about.map(async (one, number) => {
    const names = await jsonOf(`names${number}`);
    return new Table(one, names, {
      vectors: new Int8Array(await bytesOf(`vectors${number}`)),
      points: new Int16Array(await bytesOf(`points${number}`)),
      groups: new Uint8Array(await bytesOf(`groups${number}`)),
    });
  }));
}
