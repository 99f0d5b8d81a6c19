// Tests of the console in a browser, against the real server with a scripted model. PINTLE_BIN names the command.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";

import { fold } from "../../crates/server/console/reducer.js";
import { visibleEntries } from "../../crates/server/console/rows.js";
import { HARMLESS, injected, launch, Pages, until, violations } from "./chromium.mjs";
import { PNG } from "./scripts.mjs";
import { startServer, stop } from "./server.mjs";

let browser;
let pages;
let page;
let server;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser?.close();
});

beforeEach(async () => {
  pages = new Pages(browser);
  page = await pages.open();
});

afterEach(async () => {
  await pages.close(server.url).finally(() => server.close());
});

const WORK = `
[[turn]]
text = "I write the **table** first."
call = [{ tool = "Write", arguments = { file_path = "roman.txt", content = "V\\nI\\n" } }]
[[turn]]
text = "Now the pair that is missing."
call = [{ tool = "Edit", arguments = { file_path = "roman.txt", old_string = "V\\n", new_string = "IX\\nV\\n" } }]
[[turn]]
call = [
  { tool = "Bash", arguments = { command = "printf '\\\\033[32mcounted\\\\033[0m '; wc -l < roman.txt" } },
  { tool = "TodoWrite", arguments = { todos = [{ content = "Extend the table", status = "completed", activeForm = "Extending" }, { content = "Count", status = "in_progress", activeForm = "Counting" }] } },
]
[[turn]]
text = "Three lines.\\n\\n| value | numeral |\\n|---|---|\\n| 9 | IX |"
[[turn]]
text = "It stays as it is."
`;

const ASKS = `
[[turn]]
text = "I count it."
call = [{ tool = "Bash", arguments = { command = "echo once >> log.txt" } }]
[[turn]]
text = "It is counted."
`;

/** Asks about three calls at once. */
const ASKS_THREE = `
[[turn]]
${["one", "two", "three"].map((word) => `[[turn.call]]\ntool = "Bash"\narguments = { command = "echo ${word} >>log.txt" }\n`).join("")}
[[turn]]
text = "It is counted."
`;

/** Opens the line that the server printed, and one of its sessions. */
async function open(id, where = page) {
  await where.goto(server.line);
  await where.waitForSelector("#sessions", { state: "attached" });
  if (id) {
    await where.goto(`${server.url}/#/s/${id}`);
    await where.waitForSelector("main .row");
  }
  return where;
}

/** Approves the calls of the script `WORK`, which come one after the other. */
async function approveWork(where, look = async () => {}) {
  for (const tool of ["Write", "Edit", "Bash"]) {
    const card = where.getByRole("article", { name: `Approval of ${tool}` });
    await card.waitFor();
    await look(tool);
    await card.getByRole("button", { name: "Approve" }).click();
    await card.waitFor({ state: "detached" });
  }
  await where.locator(".row.end").waitFor();
}

/** Opens the calls that are folded. */
async function unfold(where) {
  const folded = where.locator(".row.call > details:not([open]) > summary");
  while ((await folded.count()) > 0) await folded.first().click();
}

/** Waits for the end of a run. A session that was just created is idle as well. */
async function idle(id) {
  const rests = ({ state, tokens }) => state === "IDLE" && tokens > 0;
  await until(async () => rests(await server.get(`sessions/${id}`)), "the run ends");
}

const message = (where = page) => where.getByLabel("Message", { exact: true });

async function send(text, key = "Enter") {
  await message().fill(text);
  await message().press(key);
}

/** Returns the texts of a session in the order of its journal: messages, responses and outputs. */
async function recorded(id) {
  const texts = [];
  for (const line of await server.journal(id)) {
    if (["submit", "steer", "follow_up"].includes(line.input)) texts.push(line.text);
    else if (line.input === "segment_closed" && line.kind === "text") texts.push(line.text);
  }
  return texts;
}

test("a session of the composer has a complete timeline", async () => {
  server = await startServer(WORK);
  await open();
  assert.equal(new URL(page.url()).hash, "", "the token is not left in the address");
  await page.getByText("0 sessions").waitFor();
  await page.keyboard.press("n");
  await page.getByLabel("Message").fill("Add the missing pair.");
  await page.getByRole("dialog").getByRole("button", { name: "Start" }).click();
  await page.locator(".row.end", { hasText: "Done" }).waitFor();
  await page.locator(".row.input", { hasText: "Add the missing pair." }).waitFor();
  await page.locator(".row.text td", { hasText: "IX" }).waitFor();
  await page.locator(".row.text strong", { hasText: "table" }).waitFor();
  await page.locator("summary", { hasText: "Edit" }).click();
  await page.locator(".row.call tr.add", { hasText: "IX" }).waitFor();
  await page.locator("summary", { hasText: "Bash" }).click();
  await page.locator(".row.call pre", { hasText: "counted 3" }).waitFor();
  await page.locator(".row.call pre .t-green", { hasText: "counted" }).waitFor();
  await page.locator(".row.call .plan .in_progress", { hasText: "Count" }).waitFor();
  await page.locator(".sessions .title", { hasText: "Add the missing pair." }).waitFor();
  await page.locator(".sessions .state", { hasText: "idle" }).waitFor();
  await page.getByRole("heading", { name: "Add the missing pair." }).waitFor();
  assert.equal(server.file("roman.txt"), "IX\nV\nI\n");
  const other = await open("", await pages.open());
  await other.locator(".sessions .title", { hasText: "Add the missing pair." }).waitFor();
});

test("changes of the workspace are shown where compared", async () => {
  server = await startServer(WORK);
  const id = await server.begin("Add the missing pair.");
  await idle(id);
  await open(id);
  await page.keyboard.press("d");
  const tab = page.getByRole("tab", { name: "Changes" });
  if (await server.get(`sessions/${id}/diff`).catch(() => null)) {
    await page.locator("#panel .file", { hasText: "roman.txt" }).waitFor();
    assert.ok((await page.locator("#panel .checkpoints li").count()) > 0);
  } else {
    await tab.waitFor({ state: "hidden" });
    assert.equal(await page.locator(".toast").count(), 0);
  }
});

test("cards are in the order of the timeline, and keys act on what has the focus", async () => {
  server = await startServer(ASKS_THREE, { mode: "ask" });
  const id = await server.begin("Count to three.");
  await open(id);
  const commands = () => page.locator(".card").evaluateAll((cards) => cards.map((card) => /echo (\w+)/.exec(card.textContent)?.[1]));
  await page.locator(".card").nth(2).waitFor();
  assert.deepEqual(await commands(), ["one", "two", "three"]);
  const ran = () => (server.file("log.txt") ?? "").trim().split("\n");
  const asking = page.locator(".row.call", { hasText: "echo one" });
  await page.keyboard.press("a");
  await page.keyboard.press("j");
  await page.keyboard.press("y");
  await page.locator(".card", { hasText: "echo two" }).waitFor({ state: "detached" });
  assert.deepEqual(await commands(), ["one", "three"]);
  assert.match(await page.evaluate(() => document.activeElement.textContent), /echo three/, "the next card has the focus");
  // The call in the timeline has the focus, and the first card does not.
  await asking.focus();
  await page.keyboard.press("y");
  await page.locator(".card", { hasText: "echo one" }).waitFor({ state: "detached" });
  assert.deepEqual(await commands(), ["three"]);
  // Nothing that waits has the focus.
  await page.locator(".row.input").first().focus();
  await page.keyboard.press("y");
  await page.waitForTimeout(200);
  assert.deepEqual(await commands(), ["three"]);
  await page.locator(".card").getByRole("button", { name: "Approve" }).click();
  await page.locator(".row.end").waitFor();
  assert.deepEqual(ran().sort(), ["one", "three", "two"]);
});

test("an approval by a click releases exactly one call", async () => {
  server = await startServer(ASKS, { mode: "ask" });
  const id = await server.begin("Count it.");
  await open(id);
  const card = page.locator(".card", { hasText: "echo once" });
  await card.waitFor();
  assert.match(await page.locator("#alarm").textContent(), /1 call waits for your approval/);
  assert.match(await page.title(), /^\(1\) /);
  assert.equal(server.file("log.txt"), null);
  await card.getByRole("button", { name: "Approve" }).dblclick();
  await card.waitFor({ state: "detached" });
  await page.locator(".row.text", { hasText: "It is counted." }).waitFor();
  assert.equal(server.file("log.txt"), "once\n");
  const lines = await server.journal(id);
  assert.equal(lines.filter((line) => line.input === "tool_started").length, 1);
  await until(async () => !/^\(/.test(await page.title()), "nothing waits any more");
});

const OF_TENANTS = `
[[turn]]
text = "I count it."
call = [{ tool = "Bash", arguments = { command = "git config user.name >>log.txt; echo beyond >../beyond.txt" } }]
[[turn]]
text = "It is counted."
`;

/** Logs in with a token in the form of the page. */
async function logIn(where, token) {
  await where.goto(server.url);
  await where.getByLabel("Token").fill(token);
  await where.getByRole("button", { name: "Sign in" }).click();
  await where.getByText("0 sessions").waitFor();
}

/** Creates a session in the dialog, and returns its id once its call waits for a decision. */
async function create(where, text) {
  await where.keyboard.press("n");
  await where.getByLabel("Message").fill(text);
  await where.getByRole("dialog").getByRole("button", { name: "Start" }).click();
  await where.getByRole("article", { name: "Approval of Bash" }).waitFor();
  return decodeURIComponent(new URL(where.url()).hash.replace("#/s/", ""));
}

async function approveCall(where) {
  await where.getByRole("article", { name: "Approval of Bash" }).getByRole("button", { name: "Approve" }).click();
  await where.locator(".row.text", { hasText: "It is counted." }).waitFor();
  await where.locator(".row.end").waitFor();
}

test("two tenants with default settings see and decide their own sessions only", async () => {
  server = await startServer(OF_TENANTS, { mode: null, tenants: { ann: "red", bob: "blue" } });
  const other = await pages.open();
  await logIn(page, server.tokens.ann);
  const id = await create(page, "Count for the red ones.");
  // The requests of this process are those of the first tenant.
  server.token = server.tokens.ann;
  const [{ call_id: call, fingerprint }] = (await server.get(`sessions/${id}/approvals`)).approvals;

  await logIn(other, server.tokens.bob);
  const status = (path, body) => other.evaluate(async ([at, data]) => {
    const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
    const response = await fetch(at, data ? { method: "POST", headers, body: JSON.stringify(data) } : {});
    return response.status;
  }, [`/v1/sessions${path}`, body]);
  for (const part of ["", "/events", "/history", "/journal", "/approvals", "/export", "/audit"]) assert.equal(await status(`/${id}${part}`), 404, part);
  assert.equal(await status(`/${id}/approvals/${call}`, { fingerprint, decision: "approve" }), 404);
  assert.equal(await status(`/${id}/submit`, { text: "Go on" }), 404);
  assert.equal(await status(""), 200);
  // The connection of all tabs reports the error in its stream.
  const streamed = await other.evaluate(async (at) => {
    const reader = (await fetch(at)).body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let isDone = false; !isDone && !/event: followed\n[^]*?\n\n/.test(text); ) {
      const { value = "", done } = await reader.read();
      text += value;
      isDone = done;
    }
    await reader.cancel();
    return text;
  }, `/v1/streams?follow=x:session:${id}`);
  assert.match(streamed, /"name":"problem"[^]*"status":404/);
  await other.goto(`${server.url}/#/s/${id}`);
  await other.waitForURL(({ hash }) => hash === "#/");
  await other.getByText("Choose a session").waitFor();
  await other.getByText("0 sessions").waitFor();
  assert.equal(server.file("log.txt"), null, "the call still waits");

  await approveCall(page);
  assert.equal(server.file("log.txt"), "A User\n");
  const theirs = await create(other, "Count for the blue ones.");
  await approveCall(other);
  assert.equal(server.file("log.txt"), "A User\nA User\n");
  assert.equal(server.file("../beyond.txt"), null, "commands are in the sandbox");
  for (const [where, text] of [[page, "Count for the red ones."], [other, "Count for the blue ones."]]) {
    await where.reload();
    await where.locator(".sessions .title", { hasText: text }).waitFor();
    assert.equal(await where.locator(".sessions .title").count(), 1);
  }
  assert.ok(server.isKept(id) && server.isKept(theirs));
});

test("a denial has words, which the model gets", async () => {
  server = await startServer(`
[[turn]]
call = [{ tool = "Bash", arguments = { command = "echo no > log.txt" } }]
[[turn]]
text = "I use the test database."
[[turn.expect]]
call = 0
contains = "Use the test database"
`, { mode: "ask" });
  const id = await server.begin("Count it.");
  await open(id);
  await page.getByRole("button", { name: "Deny …" }).click();
  await page.getByLabel("Reason, which the model reads").fill("Use the test database");
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await page.locator(".row.text", { hasText: "I use the test database." }).waitFor();
  await page.locator("summary.bad", { hasText: "denied" }).waitFor();
  assert.equal(server.file("log.txt"), null);
});

test("a call runs with changed arguments", async () => {
  server = await startServer(ASKS, { mode: "ask" });
  const id = await server.begin("Count it.");
  await open(id);
  await page.getByRole("button", { name: "Change …" }).click();
  await page.getByLabel("Arguments that the call runs with instead").fill('{"command": "echo changed > log.txt"}');
  await page.keyboard.press("Control+Enter");
  await page.locator(".row.text", { hasText: "It is counted." }).waitFor();
  assert.equal(server.file("log.txt"), "changed\n");
});

test("of two decisions at once, the second is told", async () => {
  server = await startServer(ASKS, { mode: "ask" });
  const id = await server.begin("Count it.");
  await open(id);
  const other = await open(id, await pages.open());
  const approve = page.locator(".card").getByRole("button", { name: "Approve" });
  await other.locator(".card").getByRole("button", { name: "Deny …" }).click();
  const deny = other.getByRole("button", { name: "Deny", exact: true });
  await approve.waitFor();
  // Both decisions are on their way at once.
  let release;
  const released = new Promise((resolve) => (release = resolve));
  for (const where of [page, other]) await where.route("**/approvals/*", (route) => released.then(() => route.continue()));
  await approve.click();
  await deny.click();
  release();
  const told = (where) => where.locator(".toast", { hasText: "Another client was first" }).waitFor().then(() => where);
  const second = await Promise.any([told(page), told(other)]);
  await idle(id);
  const kinds = (await server.events(id)).map((event) => event.kind);
  assert.equal(kinds.filter((kind) => kind === "APPROVAL_DECIDED").length, 1);
  assert.ok(!kinds.includes("APPROVAL_LATE"), "the second decision does not reach the session");
  assert.equal(server.file("log.txt"), second === page ? null : "once\n");
  for (const where of [page, other]) await where.locator(".card").waitFor({ state: "detached" });
});

test("calls of subagents are decided on in their root", async () => {
  server = await startServer(`
[[turn]]
call = [{ tool = "Bash", arguments = { command = "echo once >> log.txt" } }]
[[turn]]
text = "It is counted."
[[turn]]
call = [{ tool = "Task", arguments = { description = "count", prompt = "Count again.", subagent_type = "general-purpose" } }]
[[turn]]
text = "The subagent has counted."
`, { mode: "ask" });
  const id = await server.begin("Count it.");
  await open(id);
  await page.locator(".card").getByRole("button", { name: "Approve" }).click();
  await page.locator(".row.end").waitFor();
  await send("Have it counted again.");
  await page.locator(".card", { hasText: "Subagent" }).getByRole("button", { name: "Approve" }).click();
  await page.locator(".row.text", { hasText: "The subagent has counted." }).waitFor();
  assert.equal(server.file("log.txt"), "once\nonce\n");
  await page.locator(".row.agent summary").click();
  await page.locator(".lane .said", { hasText: "It is counted." }).waitFor();
  await page.locator(".lane a").click();
  await page.getByRole("heading", { name: "Count again." }).waitFor();
});

test("messages steer and follow, an interrupt stops", async () => {
  server = await startServer(`
[[turn]]
text = "I wait for the file."
call = [{ tool = "Bash", arguments = { command = "while [ ! -e go ]; do sleep 0.1; done" } }]
[[turn]]
text = "Briefly then."
[[turn.expect]]
request_contains = "Be brief."
[[turn]]
text = "${"This response takes long. ".repeat(8)}"
pause_ms = 2000
`);
  const id = await server.begin("Wait for the file.");
  await open(id);
  await page.locator("summary.busy", { hasText: "Bash" }).waitFor();
  await send("Be brief.");
  await page.locator(".outbox", { hasText: "Be brief." }).waitFor();
  await send("And then the rest.", "Alt+Enter");
  await page.locator(".outbox", { hasText: "And then the rest." }).waitFor();
  // The session looks for messages twice a second.
  await until(async () => (await server.journal(id)).filter((line) => line.posted).length === 3, "the session has the messages");
  writeFileSync(join(server.directory, "go"), "");
  await page.locator(".row.input", { hasText: ", steering" }).waitFor();
  await page.locator(".row.text", { hasText: "Briefly then." }).waitFor();
  await page.locator(".row.input", { hasText: "And then the rest." }).waitFor();
  await page.locator(".outbox").waitFor({ state: "hidden" });
  await page.locator(".row.text.open", { hasText: "This response takes long." }).waitFor();
  await page.keyboard.press("Control+.");
  await page.locator("p:visible", { hasText: "The response was cut off here." }).waitFor();
  await page.locator(".row.end").waitFor();
  assert.equal((await server.get(`sessions/${id}`)).state, "IDLE");
});

const TALK = `
[[turn]]
text = "First response."
[[turn]]
text = "Second response."
[[turn]]
text = "Third response."
`;

/** Starts a session with two inputs and their responses. */
async function talk() {
  server = await startServer(TALK);
  const id = await server.begin("First input");
  await idle(id);
  await server.post(`sessions/${id}/submit`, { text: "Second input" });
  await until(async () => (await server.get(`sessions/${id}/history`)).turns.length === 4, "two responses");
  await idle(id);
  await open(id);
  await page.locator(".row.text", { hasText: "Second response." }).waitFor();
  return id;
}

const texts = async (id) => (await server.get(`sessions/${id}/history`)).turns.map((turn) => turn.text);
const idOf = () => decodeURIComponent(new URL(page.url()).hash.replace("#/s/", ""));

test("a session is forked at a turn", async () => {
  const id = await talk();
  const row = page.locator(".row.text", { hasText: "First response." });
  await row.hover();
  await row.getByRole("button", { name: "Fork after this" }).click();
  await page.waitForURL((url) => !url.href.includes(id));
  await page.locator(".row.notice", { hasText: "first 2 entries" }).waitFor();
  assert.deepEqual(await texts(idOf()), ["First input", "First response."]);
  await send("Another input");
  await page.locator(".row.text", { hasText: "Second response." }).waitFor();
  assert.deepEqual(await texts(idOf()), ["First input", "First response.", "Another input", "Second response."]);
  assert.equal((await texts(id)).length, 4, "the origin is as it was");
});

test("an input is edited and sent again in a fork", async () => {
  const id = await talk();
  const row = page.locator(".row.input", { hasText: "Second input" });
  await row.hover();
  await row.getByRole("button", { name: "Edit and resend" }).click();
  await page.getByLabel("Input", { exact: true }).fill("Second input, mended");
  await page.getByRole("button", { name: "Send in a fork" }).click();
  await page.waitForURL((url) => !url.href.includes(id));
  await page.locator(".row.input", { hasText: "Second input, mended" }).waitFor();
  await page.locator(".row.text", { hasText: "Second response." }).waitFor();
  assert.deepEqual(await texts(idOf()), ["First input", "First response.", "Second input, mended", "Second response."]);
});

test("a rewind shows what it removes, then continues", async () => {
  const id = await talk();
  const row = page.locator(".row.input", { hasText: "Second input" });
  await row.hover();
  await row.getByRole("button", { name: "Rewind to before" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Second response.").waitFor();
  await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
  await page.locator(".row.notice", { hasText: "Rewound" }).waitFor();
  await page.locator(".row.text.dropped", { hasText: "Second response." }).waitFor();
  assert.ok(await page.locator(".row.text:not(.dropped)", { hasText: "First response." }).isVisible());
  assert.deepEqual(await texts(id), ["First input", "First response."]);
  await send("Another way");
  await page.locator(".row.text:not(.dropped)", { hasText: "Second response." }).waitFor();
  assert.deepEqual(await texts(id), ["First input", "First response.", "Another way", "Second response."]);
});

test("the scrubber shows the session at each event", async () => {
  server = await startServer(WORK);
  const id = await server.begin("Add the missing pair.");
  await idle(id);
  const events = await server.events(id);
  await open(id);
  await page.locator(".row.end").waitFor();
  await page.keyboard.press("r");
  await page.getByText(`Event ${events.length} of ${events.length}`).waitFor();
  const slider = page.getByRole("slider", { name: "Position in the session" });
  for (const position of [0, 3, Math.floor(events.length / 2)]) {
    await slider.fill(String(position));
    await page.getByText(`Event ${position} of ${events.length}`).waitFor();
    const expected = visibleEntries(fold(id, events, position).entries, "all", false).length;
    await until(async () => (await page.locator("main .row").count()) === expected, `${expected} rows at ${position}`);
  }
  await page.keyboard.press("Escape");
  await message().waitFor();
  await page.locator(".row.end").waitFor();
});

test("the exported file needs no network", async () => {
  server = await startServer(WORK);
  const id = await server.begin("Add the missing pair.");
  await idle(id);
  await open(id);
  await page.locator(".row.end").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("x")]);
  assert.equal(download.suggestedFilename(), "add-the-missing-pair.html");
  const directory = mkdtempSync(join(tmpdir(), "pintle-export-"));
  const context = await browser.newContext({ offline: true });
  try {
    const path = join(directory, "export.html");
    await download.saveAs(path);
    const file = await context.newPage();
    const asked = [];
    file.on("request", (request) => asked.push(request.url()));
    await file.goto(pathToFileURL(path).href);
    for (const text of await recorded(id)) await file.getByText(text.split("\n")[0].replaceAll("**", "")).first().waitFor();
    await file.locator("summary", { hasText: "Bash" }).click();
    await file.locator("pre", { hasText: "counted 3" }).first().waitFor();
    assert.deepEqual(asked, [pathToFileURL(path).href]);
    assert.ok(!readFileSync(path, "utf8").includes("<script"));
  } finally {
    await context.close();
    rmSync(directory, { recursive: true });
  }
});

test("after a crash the timeline is the journal", async () => {
  server = await startServer(`
[[turn]]
text = "I look at it."
call = [{ tool = "Write", arguments = { file_path = "a.txt", content = "a" } }]
[[turn]]
text = "${Array.from({ length: 60 }, (_, i) => `word${i}`).join(" ")} and the end."
pause_ms = 700
`);
  const id = await server.begin("Tell a long story.");
  await open(id);
  await page.locator(".row.text.open", { hasText: "word0" }).waitFor();
  await server.kill();
  await page.getByText("Reconnecting …").waitFor();
  await server.start();
  // Each start has another token.
  await page.getByLabel("Token").fill(server.token);
  await page.keyboard.press("Enter");
  await page.locator(".row.text", { hasText: "and the end." }).waitFor();
  await page.locator(".row.end").waitFor();
  await idle(id);
  const shown = await page.locator("main .row").evaluateAll((rows) => rows.filter((row) => row.matches(".input, .text")).map((row) => row.querySelector("pre, .markdown").innerText.trim()));
  assert.deepEqual(shown, (await recorded(id)).map((text) => text.trim()));
  const entries = visibleEntries(fold(id, await server.events(id)).entries, "all", false);
  assert.equal(await page.locator("main .row").count(), entries.length);
});

test("the line of a new start signs in again", async () => {
  server = await startServer(TALK);
  const id = await server.begin("First input");
  await idle(id);
  await open(id);
  await server.kill();
  await server.start();
  await page.getByLabel("Token").waitFor();
  await page.goto(server.line);
  await page.locator(".row.text", { hasText: "First response." }).waitFor();
});

const HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script> [me](javascript:window.hacked=1) user\u202enimda\u202c";

test("hostile text is shown as text", async () => {
  server = await startServer(`
[[turn]]
text = ${JSON.stringify(`${HOSTILE}\n\n\`\`\`html\n${HOSTILE}\n\`\`\`\n\n![pixel](https://evil.example/pixel.png)`)}
call = [{ tool = "Bash", arguments = { command = ${JSON.stringify(`echo '${HOSTILE}'`)} } }]
[[turn]]
text = "Done."
`);
  await open();
  await page.keyboard.press("n");
  await page.getByLabel("Message").fill(HOSTILE);
  await page.keyboard.press("Control+Enter");
  await page.locator(".row.end").waitFor();
  await page.locator("summary", { hasText: "Bash" }).click();
  const shown = HOSTILE.replace("\u202e", "⟨U+202E⟩").replace("\u202c", "⟨U+202C⟩");
  await page.locator(".row.input pre", { hasText: shown }).waitFor();
  await page.locator(".row.call pre", { hasText: shown }).first().waitFor();
  await page.locator(".row.text p", { hasText: "[me](javascript:window.hacked=1) user⟨U+202E⟩nimda⟨U+202C⟩" }).waitFor();
  await page.locator(".sessions .title", { hasText: "<img src=x" }).waitFor();
  assert.deepEqual(await injected(page), HARMLESS);
});

test("an image of a message is shown", async () => {
  server = await startServer(TALK);
  const id = (await server.post("sessions", { message: { text: "Look", images: [{ data: PNG, media_type: "image/png" }] } })).id;
  await idle(id);
  await open(id);
  const row = page.locator(".row.input");
  const [event] = (await server.events(id)).filter(({ kind }) => kind === "USER_INPUT");
  if (event.data.images[0].hash) await until(() => row.locator("img").evaluate((image) => image.naturalWidth === 64), "the image is loaded");
  else await row.getByText("Image 1: image/png").waitFor();
});

test("the keyboard alone leads from the list to a decision", async () => {
  server = await startServer(ASKS, { mode: "ask" });
  await server.begin("Count it.");
  await open();
  await page.locator(".sessions .state.asks").waitFor();
  for (let i = 0; i < 10 && !(await page.evaluate(() => document.activeElement.matches(".sessions a"))); i += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator(".card").waitFor();
  await page.keyboard.press("a");
  await page.keyboard.press("y");
  await page.locator(".row.text", { hasText: "It is counted." }).waitFor();
  assert.equal(server.file("log.txt"), "once\n");
});

const TASK = `
[[turn]]
[[turn.call]]
tool = "shell"
arguments = { command = """
case $PWD in
*/anchor/*) mkdir -p tests && printf '. ./add.sh\\\\ntest $(add 3 -1) -eq 2\\\\n' >tests/negative.sh ;;
*/candidates/*) sed -i 's/- /+ /' add.sh ;;
esac""" }
[[turn]]
text = '{"command": "sh tests/negative.sh", "results": null, "report": null}'
[[turn]]
text = '{"findings": [], "remarks": "It is small."}'
`;

const CONTRACT = `
goal = "Sums are right."
gates = ["result"]
[[check]]
name = "syntax"
command = "sh -n add.sh"
[[candidate]]
[[candidate]]
`;

/** Runs a task up to its gate, and opens its page. Returns the process of the task. */
async function openTask() {
  server = await startServer(TASK);
  const process = server.runTask({ "add.sh": "add() { echo $(($1 - $2)); }\n" }, CONTRACT);
  await open("");
  // A page that still begins takes no keys.
  const tasks = page.locator("main.tasks");
  for (let tries = 0; tries < 10 && (await tasks.count()) === 0; tries += 1) {
    await page.keyboard.press("g");
    await tasks.waitFor({ timeout: 2_000 }).catch(() => {});
  }
  await page.locator(".tasks .sessions a", { hasText: "Sums are right." }).click();
  await page.getByRole("article", { name: "Gate: result" }).waitFor();
  return process;
}

test("a task is followed, and goes on after a decision", async () => {
  const process = await openTask();
  const ended = new Promise((resolve) => process.once("exit", resolve));
  await page.locator(".task-common .step", { hasText: "anchor" }).waitFor();
  for (const name of ["Candidate 0", "Candidate 1"]) {
    const lane = page.getByRole("region", { name });
    await lane.locator(".state", { hasText: "has its evidence" }).waitFor();
    await lane.locator(".findings.good li", { hasText: "check syntax: passes" }).waitFor();
  }
  const lane = page.getByRole("region", { name: "Candidate 0" });
  await lane.getByRole("button", { name: "Show changes" }).click();
  await lane.locator("tr.add", { hasText: "$1 + $2" }).waitFor();
  assert.match(await page.title(), /^Sums are right\. – Pintle$/);
  assert.match(await page.locator("#alarm").textContent(), /waits for your decision/);
  assert.deepEqual(await violations(page), []);
  const phone = await open("", await pages.open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }));
  await phone.goto(page.url());
  await phone.getByRole("region", { name: "Candidate 1" }).waitFor();
  assert.equal(await phone.evaluate(() => document.documentElement.scrollWidth), 390);
  await page.keyboard.press("a");
  await page.keyboard.press("y");
  await page.locator(".session-head .state", { hasText: "done" }).waitFor();
  // The cheaper one of two with equal changes: their tokens differ by the digits of a duration.
  await page.getByRole("region", { name: /^Candidate/ }).locator(".state", { hasText: "reached the goal" }).waitFor();
  await phone.locator(".session-head .state", { hasText: "done" }).waitFor();
  assert.equal(await ended, 0);
  assert.equal(await page.getByRole("button", { name: "Cancel the task …" }).count(), 0);
});

test("a task without a process is told things and cancelled", async () => {
  await stop(await openTask(), "SIGKILL");
  await page.getByText("No process has this task open").waitFor();
  await page.getByRole("region", { name: "Candidate 1" }).getByRole("button", { name: "Say something …" }).click();
  await page.getByLabel("Words, which the model reads").fill("Use integers.");
  await page.keyboard.press("Control+Enter");
  await page.locator(".toast", { hasText: "It is said" }).waitFor();
  await page.getByRole("button", { name: "Cancel the task …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the task" }).click();
  await page.locator(".session-head .state", { hasText: "cancelled" }).waitFor();
  await page.getByRole("region", { name: "Candidate 1" }).locator(".said", { hasText: "Use integers." }).waitFor();
  assert.equal(await page.getByRole("article", { name: "Gate: result" }).count(), 0);
});

test("a width of 390 pixels has no sideways scrolling", async () => {
  server = await startServer(WORK, { mode: "ask" });
  const id = await server.begin("Add the missing pair.");
  const phone = await open("", await pages.open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }));
  const wide = () => phone.evaluate(() => document.documentElement.scrollWidth);
  await phone.locator(".sessions a", { hasText: "Add the missing pair." }).tap();
  await approveWork(phone, async (tool) => assert.equal(await wide(), 390, tool));
  await unfold(phone);
  assert.equal(await wide(), 390);
  await phone.getByRole("button", { name: "Panel" }).tap();
  assert.equal(await wide(), 390);
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe-core finds nothing, ${colorScheme}`, async () => {
    server = await startServer(WORK, { mode: "ask" });
    const id = await server.begin("Add the missing pair.");
    const other = await pages.open({ colorScheme, reducedMotion: "reduce" });
    await other.goto(server.url);
    await other.getByLabel("Token").waitFor();
    assert.deepEqual(await violations(other), [], "the form for the token");
    await open("", other);
    await other.locator(".sessions a").waitFor();
    assert.deepEqual(await violations(other), [], "the list");
    await open(id, other);
    await other.locator(".card").waitFor();
    assert.deepEqual(await violations(other), [], "an approval");
    await approveWork(other);
    await unfold(other);
    assert.deepEqual(await violations(other), [], "a session");
    await other.keyboard.press("r");
    assert.deepEqual(await violations(other), [], "the replay");
    await other.keyboard.press("Escape");
    await other.keyboard.press("?");
    assert.deepEqual(await violations(other), [], "the keys");
  });
}
