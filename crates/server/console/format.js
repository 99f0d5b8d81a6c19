// Formats numbers, times and sizes for display.

/**
 * Returns a count with a unit of thousands: `950`, `12.3k`, `1.2M`.
 * @param {number} count
 */
export function tokens(count) {
  if (count < 1000) return String(Math.round(count));
  if (count < 999_950) return `${trim(count / 1000)}k`;
  return `${trim(count / 1_000_000)}M`;
}

/** @param {number} value */
function trim(value) {
  const text = value < 100 ? value.toFixed(1) : value.toFixed(0);
  return text.replace(/\.0$/, "");
}

/**
 * Returns an amount of US dollars. Small amounts keep two significant digits.
 * @param {number} dollars
 */
export function cost(dollars) {
  if (dollars === 0) return "$0";
  if (dollars < 0.0001) return "<$0.0001";
  if (dollars < 0.01) return `$${Number(dollars.toPrecision(2))}`;
  return `$${dollars.toFixed(2)}`;
}

/**
 * Returns a duration: `3 ms`, `1.2 s`, `2 min 5 s`, `3 h 20 min`.
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 0) return "0 ms";
  if (ms < 950) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.5) return `${seconds < 9.95 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  return `${Math.round(minutes / 1440)} days`;
}

/**
 * @param {number} large
 * @param {string} largeUnit
 * @param {number} small
 * @param {string} smallUnit
 */
function pair(large, largeUnit, small, smallUnit) {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/**
 * Returns a size in bytes with a binary unit.
 * @param {number} count
 */
export function bytes(count) {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${trim(count / 1024)} KiB`;
  return `${trim(count / 1024 / 1024)} MiB`;
}

/**
 * Returns how long ago a time was, in one short word.
 * @param {number} at
 * @param {number} now
 */
export function ago(at, now) {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 45) return "now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h`;
  if (seconds < 7 * 86_400) return `${Math.round(seconds / 86_400)} d`;
  return day(at);
}

/**
 * Returns the date in ISO format, in local time.
 * @param {number} at
 */
export function day(at) {
  const date = new Date(at);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/**
 * Returns the time of day, in local time.
 * @param {number} at
 */
export function clock(at) {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** @param {number} value */
function two(value) {
  return String(value).padStart(2, "0");
}

/**
 * Returns a share as a whole percentage. Only a complete share is 100 %, and only an empty one is 0 %.
 * @param {number} part
 * @param {number} whole
 */
export function percent(part, whole) {
  if (whole <= 0 || part <= 0) return "0%";
  if (part >= whole) return "100%";
  return `${Math.min(99, Math.max(1, Math.round((part / whole) * 100)))}%`;
}

/**
 * Returns a count with its noun: `1 call`, `2 calls`.
 * @param {number} count
 * @param {string} noun
 * @param {string} [plural]
 */
export function counted(count, noun, plural) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : (plural ?? `${noun}s`)}`;
}
