// Makes the pictures of the guide: the console of the real server, with a model that mends a small program.
//
// PINTLE_BIN names the command, CHROMIUM the browser, and PICTURES another directory for the pictures.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launch, Pages, until } from "./chromium.mjs";
import { withPalette } from "./png.mjs";
import { startServer } from "./server.mjs";

const STORY = fileURLToPath(new URL("story/", import.meta.url));
const PICTURES = process.env.PICTURES ?? fileURLToPath(new URL("../../docs/guide/pictures/", import.meta.url));
const LARGEST = 120_000;
const DESKTOP = { width: 1180, height: 760 };

const EARLIER = [
  ["Which of the examples need a network?", `[[turn]]\ntext = "Two of them: \`fetch.mjs\` and \`mirror.mjs\`. The others read files only."`],
  ["Release it.", `[[turn]]\ncall = [{ tool = "AskUserQuestion", arguments = { questions = [{ question = "Which version is it?", header = "Version", multiSelect = false, options = [{ label = "0.2.0", description = "New functions" }, { label = "1.0.0", description = "The first stable one" }] }] } }]`],
  ["Write a page about the options of the command.", `[[turn]]\ntext = "The page is written: it has a table of all options, and an example of each."`],
];

async function shoot(page, name) {
  const picture = withPalette(await page.screenshot({ animations: "disabled", caret: "hide" }));
  if (picture.length > LARGEST) throw new Error(`${name}: ${picture.length} bytes, of ${LARGEST}`);
  writeFileSync(join(PICTURES, `console-${name}.png`), picture);
}

/** Opens a session in a page that has signed in. */
async function open(page, id) {
  await page.goto(`${server.url}/#/s/${id}`);
  await page.waitForSelector("main .row");
  return page;
}

/** Opens a page and signs in. */
async function signIn(options) {
  const page = await pages.open(options);
  await page.goto(server.line);
  await page.waitForSelector("#sessions", { state: "attached" });
  return page;
}

async function rests(id) {
  const isAtRest = ({ state, tokens }) => state !== "PROCESSING" && tokens > 0;
  await until(async () => isAtRest(await server.get(`sessions/${id}`)), "the run ends");
}

/** Unfolds the first calls of some tools. */
async function unfold(page, ...tools) {
  for (const tool of tools) await page.locator(".row.call summary", { hasText: tool }).first().click();
}

async function takePictures() {
  const asking = await server.begin("Nine comes out as VIIII. Mend it, and ask before you change anything.", { mode: "ask" });
  const page = await open(await signIn({ viewport: DESKTOP, colorScheme: "light" }), asking);
  await page.getByRole("article", { name: "Approval of Bash" }).getByRole("button", { name: "Approve" }).click();
  await page.getByRole("article", { name: "Approval of Edit" }).locator("tr.add").first().waitFor();
  await shoot(page, "approval");

  const id = await server.begin("The tests of the Roman numerals fail. Mend them, and say what was wrong.");
  await rests(id);
  await open(page, id);
  await page.locator(".row.end").waitFor();
  await page.keyboard.press("Home");
  await unfold(page, "Bash");
  await page.mouse.move(0, 0);
  await page.locator(".t-red").first().waitFor();
  await shoot(page, "session");
  await page.goto(`${server.url}/#/`);
  // The list has the tokens of a run only once it is read again.
  await page.reload();
  await page.getByText("Choose a session").waitFor();
  await shoot(page, "list");

  const dark = await open(await signIn({ viewport: { width: 1320, height: 760 }, colorScheme: "dark" }), id);
  await dark.locator(".row.end").waitFor();
  await unfold(dark, "Edit");
  await dark.locator("tr.add").first().waitFor();
  await dark.mouse.move(0, 0);
  await shoot(dark, "dark");

  await open(page, id);
  await page.keyboard.press("r");
  await page.getByRole("slider", { name: "Position in the session" }).fill("24");
  await page.getByText("Event 24 of").waitFor();
  await shoot(page, "replay");

  const phone = await open(await signIn({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }), asking);
  await phone.locator(".card tr.add").first().waitFor();
  await shoot(phone, "phone");
}

const directory = join(tmpdir(), "roman");
mkdirSync(directory);
for (const name of ["roman.mjs", "check.mjs"]) copyFileSync(join(STORY, name), join(directory, name));
mkdirSync(PICTURES, { recursive: true });
const server = await startServer(EARLIER[0][1], { directory });
const browser = await launch();
const pages = new Pages(browser);
try {
  for (const [message, script] of EARLIER) {
    await server.follow(script);
    await rests(await server.begin(message));
  }
  await server.follow(readFileSync(join(STORY, "task.toml"), "utf8"));
  await takePictures();
} finally {
  await browser.close();
  await server.close();
  rmSync(directory, { recursive: true });
}
