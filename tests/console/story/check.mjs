import { toRoman } from "./roman.mjs";

const EXPECTED = { 1: "I", 3: "III", 4: "IV", 9: "IX", 40: "XL", 1994: "MCMXCIV" };

let failed = 0;
for (const [number, expected] of Object.entries(EXPECTED)) {
  const found = toRoman(Number(number));
  if (found === expected) {
    console.log(`\x1b[32mok\x1b[0m    ${number} is ${found}`);
    continue;
  }
  failed += 1;
  console.log(`\x1b[31mFAIL\x1b[0m  ${number}: expected ${expected}, found ${found}`);
}
console.log(failed > 0 ? `\x1b[31m${failed} failed\x1b[0m` : "all passed");
process.exit(failed > 0 ? 1 : 0);
