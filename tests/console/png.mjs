// Makes pictures of text smaller: they get a palette of their 256 most frequent colours.

import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLOURS = 256;
const CHANNELS = 3;

/** Returns a picture of 8 bits for each of red, green and blue with a palette. */
export function withPalette(png) {
  const { width, height, rows } = decode(png);
  const counts = new Map();
  for (let i = 0; i < rows.length; i += CHANNELS) {
    const colour = rows.readUIntBE(i, CHANNELS);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, COLOURS).map(([colour]) => colour);
  const indices = new Map(palette.map((colour, index) => [colour, index]));
  for (const colour of counts.keys()) if (!indices.has(colour)) indices.set(colour, nearest(palette, colour));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) lines[y * (width + 1) + 1 + x] = indices.get(rows.readUIntBE((y * width + x) * CHANNELS, CHANNELS));
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.alloc(palette.length * CHANNELS);
  palette.forEach((colour, index) => colours.writeUIntBE(colour, index * CHANNELS, CHANNELS));
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("PLTE", colours), chunk("IDAT", deflateSync(lines, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

function nearest(palette, colour) {
  let best = 0;
  let least = Infinity;
  palette.forEach((candidate, index) => {
    const difference = [16, 8, 0].reduce((sum, shift) => sum + (((candidate >> shift) & 255) - ((colour >> shift) & 255)) ** 2, 0);
    if (difference < least) [best, least] = [index, difference];
  });
  return best;
}

function decode(png) {
  const parts = [];
  let header;
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    if (type === "IHDR") header = data;
    if (type === "IDAT") parts.push(data);
    at += length + 12;
  }
  if (header.subarray(8).join() !== "8,2,0,0,0") throw new Error("expected 8 bits for each of red, green and blue");
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  return { width, height, rows: unfilter(inflateSync(Buffer.concat(parts)), width * CHANNELS, height) };
}

/** Undoes the filters of the rows. */
function unfilter(data, size, height) {
  const rows = Buffer.alloc(size * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (size + 1)];
    for (let x = 0; x < size; x += 1) {
      const left = x >= CHANNELS ? rows[y * size + x - CHANNELS] : 0;
      const up = y > 0 ? rows[(y - 1) * size + x] : 0;
      const corner = x >= CHANNELS && y > 0 ? rows[(y - 1) * size + x - CHANNELS] : 0;
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      rows[y * size + x] = data[y * (size + 1) + 1 + x] + predicted;
    }
  }
  return rows;
}

function paeth(left, up, corner) {
  const estimate = left + up - corner;
  const [a, b, c] = [left, up, corner].map((value) => Math.abs(estimate - value));
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
