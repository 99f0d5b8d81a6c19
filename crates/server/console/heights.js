// Heights of the rows of a long list, most of them estimated, with their sums in logarithmic time.

export class Heights {
  constructor() {
    /** @type {number[]} */
    this.values = [];
    /** @type {number[]} Fenwick tree over `values`; its first element is unused. */
    this.tree = [0];
  }

  get length() {
    return this.values.length;
  }

  /** @param {number} height */
  push(height) {
    this.values.push(height);
    const i = this.values.length;
    // The new node covers the rows from `i - lowest bit` on.
    let sum = height;
    for (let child = i - 1; child > i - (i & -i); child -= child & -child) sum += this.tree[child];
    this.tree.push(sum);
  }

  /**
   * Keeps the first rows only.
   * @param {number} length
   */
  truncate(length) {
    this.values.length = Math.min(length, this.values.length);
    this.tree.length = this.values.length + 1;
  }

  /**
   * Changes the height of a row. Returns the difference.
   * @param {number} index
   * @param {number} height
   */
  set(index, height) {
    const difference = height - this.values[index];
    if (difference === 0) return 0;
    this.values[index] = height;
    for (let i = index + 1; i < this.tree.length; i += i & -i) this.tree[i] += difference;
    return difference;
  }

  /**
   * Returns the offset of a row: the sum of the heights before it.
   * @param {number} index
   */
  offset(index) {
    let sum = 0;
    for (let i = Math.min(index, this.values.length); i > 0; i -= i & -i) sum += this.tree[i];
    return sum;
  }

  total() {
    return this.offset(this.values.length);
  }

  /**
   * Returns the row at an offset, or the nearest one.
   * @param {number} offset
   */
  at(offset) {
    let index = 0;
    let rest = offset;
    let step = 1;
    while (step * 2 < this.tree.length) step *= 2;
    for (; step > 0; step >>= 1) {
      if (index + step < this.tree.length && this.tree[index + step] <= rest) {
        index += step;
        rest -= this.tree[index];
      }
    }
    return Math.max(0, Math.min(index, this.values.length - 1));
  }

  /**
   * Returns the rows that a viewport shows, and some more on both sides: `[from, to)`.
   * @param {number} top
   * @param {number} height
   * @param {number} margin in pixels
   */
  range(top, height, margin) {
    if (this.length === 0) return { from: 0, to: 0 };
    return { from: this.at(Math.max(0, top - margin)), to: Math.min(this.length, this.at(top + height + margin) + 1) };
  }
}
