// Roman numerals, the largest value first.
const VALUES = [
  [1000, "M"],
  [500, "D"],
  [100, "C"],
  [50, "L"],
  [10, "X"],
  [5, "V"],
  [1, "I"],
];

/** Writes a number from 1 to 3999. */
export function toRoman(number) {
  let out = "";
  for (const [value, numeral] of VALUES) {
    while (number >= value) {
      out += numeral;
      number -= value;
    }
  }
  return out;
}
