// Tests of the console in a browser, against the double of the server.
//
// They need the packages of package.json and a Chromium. CHROMIUM names its executable, and SCREENSHOTS a directory
// that gets pictures.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";

import { fold } from "../../crates/server/console/reducer.js";
import { HARMLESS, injected, launch, longestTask, Pages, until, violations } from "./chromium.mjs";
import { startDouble } from "./double.mjs";
import { HOSTILE_HTML } from "./scripts.mjs";

const SCREENSHOTS = process.env.SCREENSHOTS ?? "";

let browser;
let double;
let pages;
let page;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser?.close();
});

beforeEach(async () => {
  double = await startDouble();
  pages = new Pages(browser);
  page = await pages.open();
});

afterEach(async () => {
  await pages.close(double.url).finally(() => double.close());
});

async function open(id, where = page) {
  await where.goto(`${double.url}/${id ? `#/s/${id}` : ""}`);
  await where.waitForSelector(".sessions a", { state: "attached" });
  if (id) await where.waitForSelector(id === "s-stream" ? "main .composer" : "main .row");
}

async function shot(name, where = page) {
  if (SCREENSHOTS) await where.screenshot({ path: `${SCREENSHOTS}/${name}.png` });
}

const posts = (part) => double.log.filter((entry) => entry.path.includes(part));

test("the list shows what waits first, and searches and filters", async () => {
  await open("");
  const titles = () => page.locator(".sessions .title").allTextContents();
  assert.deepEqual((await titles()).slice(0, 2), ["Wants to change a file", "Asks for the version"]);
  await page.getByLabel("Search sessions").fill("other-3");
  await until(async () => (await titles()).length === 14, "the search finds sessions beyond the first page");
  await page.getByLabel("Search sessions").fill("");
  await page.getByLabel("Filter by state").selectOption("waiting");
  await until(async () => (await titles()).length === 2, "two sessions wait");
  await page.getByLabel("Filter by state").selectOption("CLOSED");
  await until(async () => (await titles()).length === 35, "closed sessions");
  assert.equal(await page.title(), "(2) Pintle");
});

test("a server without tasks has no page of them", async () => {
  await open("");
  await until(async () => double.paths.includes("GET /v1/tasks"), "the page asks for tasks");
  await page.keyboard.press("g");
  assert.equal(new URL(page.url()).hash, "");
  assert.equal(await page.getByRole("link", { name: "Tasks" }).count(), 0);
  await page.goto(`${double.url}/#/t`);
  await page.getByText("This server shows no tasks.").waitFor();
});

test("more sessions are loaded on request", async () => {
  await open("");
  assert.equal(await page.locator(".sessions li").count(), 50);
  await page.getByRole("button", { name: "Load more" }).click();
  await until(async () => (await page.locator(".sessions li").count()) === 77, "all sessions");
});

test("a session that changes moves in the list", async () => {
  await open("");
  double.sessions.get("s-old-3").add("USER_INPUT", { content: "again" });
  await until(async () => (await page.locator(".sessions .title").nth(2).textContent()) === "Earlier task 3", "the session moves up");
});

test("the timeline shows calls that unfold, diffs, output, plans and cache misses", async () => {
  await open("s-roman");
  await page.getByText("All three tests pass.").waitFor();
  await page.locator("summary", { hasText: "edit_file" }).click();
  await page.locator("tr.add", { hasText: '(9, "IX")' }).waitFor();
  assert.ok((await page.locator("tr.add .k-string").count()) > 0, "syntax colours");
  await page.getByText("cache missed: message 4 changed").waitFor();
  await page.keyboard.press("Home");
  await page.locator("summary", { hasText: "cargo test" }).first().click();
  await page.locator(".t-red", { hasText: "FAILED" }).first().waitFor();
  assert.ok(await page.locator(".plan .in_progress", { hasText: "Run the tests" }).first().isVisible());
  assert.ok(await page.locator(".row.input img").evaluate((image) => image.decode().then(() => image.naturalWidth > 0)), "the image is loaded");
  assert.equal(await page.getByRole("meter").getAttribute("aria-valuenow"), "64120");
  await shot("timeline-light");
});

test("5,000 events keep few rows in the document and scroll quickly", async () => {
  await open("");
  const longest = await longestTask(page, async () => {
    await open("s-long");
    await page.locator(".row.end").last().waitFor();
  });
  assert.ok(longest < 100, `a task of ${longest} ms`);
  assert.ok((await page.locator("main .row").count()) < 120, "windowed");
  let most = 0;
  const scrolling = await longestTask(page, async () => {
    most = await page.evaluate(async () => {
      const timeline = document.querySelector(".timeline");
      let rows = 0;
      for (let i = 0; i < 100; i += 1) {
        // Every tenth frame jumps, as with the scroll bar; the others scroll.
        if (i % 10 === 0) timeline.scrollTop = (timeline.scrollHeight * ((i * 7) % 90)) / 90;
        else timeline.scrollTop += 250;
        await new Promise((resolve) => requestAnimationFrame(resolve));
        rows = Math.max(rows, document.querySelectorAll("main .row").length);
      }
      return rows;
    });
  });
  assert.ok(most < 150, `${most} rows`);
  assert.ok(scrolling < 100, `a frame of ${scrolling} ms`);
  await page.keyboard.press("Home");
  await page.getByText("Step 1: rename the next module.").waitFor();
  await page.keyboard.press("End");
  await page.locator(".row.end").last().waitFor();
});

test("the reader's position stays while new entries arrive, and the end is followed on request", async () => {
  await open("s-long");
  await page.keyboard.press("Home");
  await page.getByText("Step 1: rename the next module.").waitFor();
  const session = double.sessions.get("s-long");
  for (let i = 0; i < 20; i += 1) session.add("WARNING", { message: `warning ${i}` });
  await page.waitForTimeout(300);
  assert.ok(await page.getByText("Step 1: rename the next module.").isVisible());
  await page.getByRole("button", { name: "Newest" }).click();
  await page.getByText("warning 19").waitFor();
  session.add("WARNING", { message: "one more" });
  await until(() => page.getByText("one more").isVisible(), "the end is followed");
});

test("views and the search choose entries", async () => {
  await open("s-roman");
  await page.getByLabel("Entries that are shown").selectOption("problems");
  await until(async () => (await page.locator("main .row").count()) === 4, "problems only");
  await page.getByLabel("Entries that are shown").selectOption("all");
  await page.getByLabel("Search the timeline").fill("subtractive");
  await page.keyboard.press("Enter");
  await page.locator(".row.selected", { hasText: "subtractive pairs" }).waitFor();
});

test("text streams in deltas, and steering and queued messages are sent", async () => {
  await open("s-stream");
  double.sessions.get("s-stream").speed = 150;
  await page.getByLabel("Message", { exact: true }).fill("Explain it");
  await page.keyboard.press("Enter");
  await page.locator(".row.text.open", { hasText: "The test expects" }).waitFor();
  await page.getByLabel("Message", { exact: true }).fill("Be brief");
  await page.keyboard.press("Enter");
  await page.locator(".row.input", { hasText: "Be brief" }).waitFor();
  await page.getByLabel("Message", { exact: true }).fill("And then release");
  await page.keyboard.press("Alt+Enter");
  await page.locator(".outbox", { hasText: "And then release" }).waitFor();
  await page.locator(".row.input", { hasText: "And then release" }).waitFor();
  assert.ok(await page.locator(".outbox").isHidden());
  assert.deepEqual(double.log.map((entry) => entry.path.split("/").at(-1)), ["submit", "say", "follow-up"]);
  await page.keyboard.press("Control+.");
  await page.locator("p:visible", { hasText: "The response was cut off here." }).waitFor();
});

test("images are attached to a message", async () => {
  await open("s-stream");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Image", exact: true }).click()]);
  await chooser.setFiles({ name: "a.png", mimeType: "image/png", buffer: Buffer.from(double.sessions.get("s-roman").blob, "base64") });
  await page.locator(".attached img").waitFor();
  await page.getByLabel("Message", { exact: true }).fill("Look");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("Image 1: image/png").waitFor();
  assert.equal(posts("submit")[0].body.images[0].media_type, "image/png");
});

test("mode, model and effort are changed", async () => {
  await open("s-stream");
  await page.getByLabel("Mode", { exact: true }).selectOption("plan");
  await until(() => double.log.some((entry) => entry.method === "PATCH"), "PATCH");
  assert.deepEqual(double.log[0].body, { mode: "plan" });
});

test("an approval by double click posts exactly one decision", async () => {
  await open("s-approval");
  const card = page.locator(".card");
  await card.locator("tr.add", { hasText: '(9, "IX")' }).waitFor();
  assert.match(await page.locator("#alarm").textContent(), /1 call waits for your approval/);
  await shot("approval-light");
  await card.getByRole("button", { name: "Approve" }).dblclick();
  await card.waitFor({ state: "detached" });
  await page.waitForTimeout(200);
  assert.equal(posts("approvals").length, 1);
  assert.deepEqual(posts("approvals")[0].body, { fingerprint: "00112233445566778899aabbccddeeff", decision: "approve" });
});

test("a denial has words", async () => {
  await open("s-approval");
  await page.getByRole("button", { name: "Deny …" }).click();
  await page.getByLabel("Reason, which the model reads").fill("Use the test database");
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await page.locator(".card").waitFor({ state: "detached" });
  assert.deepEqual(posts("approvals").map((entry) => entry.body.reason), ["Use the test database"]);
  await page.locator("summary.bad", { hasText: "edit_file" }).waitFor();
});

test("arguments are changed before the call runs", async () => {
  await open("s-approval");
  await page.getByRole("button", { name: "Change …" }).click();
  const field = page.getByLabel("Arguments that the call runs with instead");
  await field.fill("{");
  await page.getByRole("button", { name: "Run with these arguments" }).click();
  await page.getByText("The arguments are no JSON").waitFor();
  await field.fill('{"file_path": "b"}');
  await page.keyboard.press("Control+Enter");
  await page.locator(".card").waitFor({ state: "detached" });
  assert.deepEqual(posts("approvals")[0].body.arguments, { file_path: "b" });
});

test("a decision that comes second is reported", async () => {
  await open("s-approval");
  await page.locator(".card").waitFor();
  const session = double.sessions.get("s-approval");
  session.taken = true;
  session.approvals = [];
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator(".toast", { hasText: "Another client was first" }).waitFor();
  await page.locator(".card").waitFor({ state: "detached" });
});

test("a new approval is announced and shown", async () => {
  await open("s-stream");
  const session = double.sessions.get("s-stream");
  session.add("USER_INPUT", { content: "x" });
  const args = { command: "rm -r build" };
  const fingerprint = "11112233445566778899aabbccddeeff";
  session.approvals.push({ call_id: "c9", fingerprint, session: "s-stream", tool_name: "shell", arguments: args, reason: "it removes files", writes: [], suggested_rules: [] });
  session.add("APPROVAL_REQUESTED", { call_id: "c9", tool_name: "shell", call_kind: "command", arguments: args, reason: "it removes files", fingerprint });
  await page.locator(".card", { hasText: "rm -r build" }).waitFor();
  assert.match(await page.locator("#alarm").textContent(), /waits? for/);
});

test("files of a checkpoint are restored after a preview", async () => {
  await open("s-roman");
  for (const [foreign, name] of [[[], "Restore"], [["src/roman.rs"], "Restore these as well"]]) {
    double.foreign = foreign;
    await page.getByRole("tab", { name: "Changes" }).click();
    await page.getByRole("button", { name: /^Restore the files of/ }).first().click();
    await page.locator("dialog li", { hasText: "src/roman.rs" }).waitFor();
    await page.locator("dialog").getByRole("button", { name, exact: true }).click();
    await page.getByText("The files were restored").first().waitFor();
    const [plan, made] = posts("/restore").splice(-2).map(({ body }) => body);
    assert.equal(plan.dry_run, true);
    assert.deepEqual([made.checkpoint, made.force, made.dry_run], [plan.checkpoint, foreign.length > 0, undefined]);
  }
});

test("a plan that waits for approval is shown as text", async () => {
  await open("s-stream");
  const session = double.sessions.get("s-stream");
  session.add("USER_INPUT", { content: "x" });
  const args = { plan: "# Add numerals\n\n1. Read `roman.rs`\n2. Add **nine**" };
  const call = { call_id: "c9", tool_name: "present_plan", call_kind: "other", arguments: args, reason: "the plan is accepted or not", fingerprint: "22" };
  session.approvals.push({ ...call, session: "s-stream", writes: [], suggested_rules: [] });
  session.add("APPROVAL_REQUESTED", call);
  const card = page.locator(".card");
  await card.locator(".markdown li", { hasText: "Add nine" }).waitFor();
  assert.ok((await card.innerText()).includes("Add numerals"));
  assert.ok(!(await card.locator(".subject-box > :first-child").innerText()).includes('"plan"'));
});

test("the scrubber shows the session at each event", async () => {
  await open("s-roman");
  await page.getByRole("button", { name: "Replay" }).click();
  const slider = page.getByRole("slider", { name: "Position in the session" });
  await slider.fill("2");
  await page.getByText("Event 2 of 40").waitFor();
  await until(async () => (await page.locator("main .row").count()) === 1, "only the input is there");
  await page.keyboard.press(".");
  await page.keyboard.press(".");
  await page.getByText("Event 4 of 40").waitFor();
  await page.getByText("Waiting for the model").first().waitFor();
  await page.keyboard.press(",");
  await page.getByText("Event 3 of 40").waitFor();
  await page.getByLabel("Speed").selectOption("64");
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await page.getByText("Event 40 of 40").waitFor();
  await shot("replay-light");
  await page.keyboard.press("Escape");
  await page.getByLabel("Message", { exact: true }).waitFor();
  await page.getByText("All three tests pass.").waitFor();
});

test("a fork after a response, and an input that is edited and sent again", async () => {
  await open("s-roman");
  const row = page.locator(".row.text", { hasText: "Now the tests again." });
  await row.hover();
  await row.getByRole("button", { name: "Fork after this" }).click();
  await page.getByRole("heading", { name: /^Fork of/ }).waitFor();
  const seq = double.sessions.get("s-roman").history().findIndex((turn) => turn.text === "Now the tests again.");
  assert.deepEqual(posts("fork")[0].body, { turns: seq + 1 });
  await page.goBack();
  await page.getByText("All three tests pass.").waitFor();
  await page.keyboard.press("Home");
  await page.locator(".row.input.selected").waitFor();
  await page.keyboard.press("e");
  await page.getByRole("textbox", { name: "Input", exact: true }).fill("Mend it differently");
  await page.getByRole("button", { name: "Send in a fork" }).click();
  await page.locator(".row.input", { hasText: "Mend it differently" }).waitFor();
  assert.deepEqual(posts("fork")[1].body, { turns: 0 });
  assert.equal(posts("submit")[0].body.text, "Mend it differently");
});

test("a damaged record is shown up to the damage", async () => {
  double.sessions.get("s-roman").damage = "the journal of session `s-roman` is damaged at line 9: its hash is wrong";
  await open("s-roman");
  await page.getByRole("alert").filter({ hasText: "is damaged at line 9" }).waitFor();
  await page.getByText("All three tests pass.").waitFor();
  await page.getByRole("tab", { name: "History" }).click();
  await page.locator("#panel", { hasText: "is damaged at line 9" }).waitFor();
  await page.getByRole("button", { name: "Fork after entry 3", exact: true }).waitFor();
});

test("a rewind shows first what it removes", async () => {
  await open("s-roman");
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("button", { name: "Rewind to after entry 3", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("src/lib.rs").waitFor();
  assert.equal(posts("rewind").length, 0);
  await shot("rewind-light");
  await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
  await until(() => posts("rewind").length === 1, "rewind");
  assert.deepEqual(posts("rewind")[0].body, { turns: 3 });
  await page.locator(".row.notice", { hasText: "Rewound" }).waitFor();
  await page.locator(".row.text.dropped", { hasText: "All three tests pass." }).waitFor();
  await page.keyboard.press("Home");
  assert.ok(await page.locator(".row.text:not(.dropped)", { hasText: "I look at the test first" }).isVisible());
});

test("the changes of the workspace are shown", async () => {
  await open("s-roman");
  await page.keyboard.press("d");
  await page.getByText("2 changed files").waitFor();
  await page.locator("#panel .file", { hasText: "notes.md" }).waitFor();
  await page.getByText("before call").waitFor();
});

test("what the server lacks is hidden", async () => {
  await open("s-question");
  await page.keyboard.press("d");
  await page.getByRole("tab", { name: "Changes" }).waitFor({ state: "hidden" });
  assert.equal(await page.locator(".toast").count(), 0);
  await page.getByRole("tab", { name: "Overview" }).focus();
  for (let i = 0; i < 2; i += 1) await page.keyboard.press("ArrowRight");
  await page.getByRole("tab", { name: "History", selected: true }).waitFor();
});

test("a plan that was folded stays folded", async () => {
  await open("s-roman");
  await page.keyboard.press("Home");
  const plan = page.locator(".row.call", { hasText: "update_plan" }).first();
  await plan.locator("summary").click();
  await plan.locator(".plan").waitFor({ state: "hidden" });
  for (const view of ["talk", "all"]) await page.getByLabel("Entries that are shown").selectOption(view);
  await page.keyboard.press("Home");
  await plan.waitFor();
  assert.ok(await plan.locator(".plan").isHidden());
});

test("keys without a modifier are turned off, and on again", async () => {
  await open("");
  await page.keyboard.press("?");
  const setting = page.getByLabel("Keys that are one character");
  await setting.uncheck();
  await page.keyboard.press("Escape");
  for (const where of [page, await page.context().newPage()]) {
    if (where !== page) await open("s-approval", where);
    for (const key of ["n", "?", "x", "r"]) await where.keyboard.press(key);
    assert.equal(await where.getByRole("dialog").count() + (await where.locator(".replay").count()), 0);
    assert.ok(await where.locator(".letters").first().isHidden());
  }
  await page.getByRole("button", { name: "Keys" }).click();
  await setting.check();
  await page.keyboard.press("Escape");
  await page.keyboard.press("n");
  await page.getByRole("dialog").getByLabel("Message").waitFor();
});

test("a session deleted elsewhere leaves list and page", async () => {
  await open("s-question");
  await page.locator(".sessions .title", { hasText: "Asks for the version" }).waitFor();
  double.sessions.delete("s-question");
  double.cut();
  await page.getByText("Choose a session").waitFor();
  await page.locator(".sessions .title", { hasText: "Asks for the version" }).waitFor({ state: "detached" });
  assert.equal(await page.locator(".sessions li").count(), 50, "those of later pages stay as well");
  await fetch(`${double.url}/v1/sessions/s-approval`, { method: "DELETE", headers: { "idempotency-key": "k" } });
  await page.locator(".sessions .title", { hasText: "Wants to change a file" }).waitFor({ state: "detached" });
  await until(async () => (await page.title()) === "Pintle", "nothing waits any more");
});

test("a subagent's page leaves decisions to its parent", async () => {
  await open("s-agents-1");
  await page.getByRole("heading", { name: "Find out who calls" }).waitFor();
  const row = page.locator(".row.input");
  await row.hover();
  await row.getByRole("button", { name: "Fork after this" }).waitFor();
  assert.equal(await row.getByRole("button", { name: "Edit and resend" }).count(), 0);
  await page.getByText("More", { exact: true }).click();
  assert.ok(await page.getByRole("button", { name: "End the session …" }).isHidden());
  await page.getByRole("link", { name: "s-agents", exact: true }).waitFor();
});

test("subagents are lanes with their own events", async () => {
  await open("s-agents");
  for (const name of ["agent_1", "agent_2"]) await page.locator(".row.agent summary", { hasText: name }).click();
  await page.locator(".lane", { hasText: "Only `src/main.rs` calls it." }).waitFor();
  await page.locator(".lane .call", { hasText: "read_file" }).waitFor();
  await page.getByRole("tab", { name: "Subagents" }).click();
  assert.equal(await page.locator(".bars .bar").count(), 2);
  await shot("agents-light");
  await page.locator(".lane a").first().click();
  await page.waitForURL(/s-agents-1/);
  await page.locator(".row.text", { hasText: "Only src/main.rs calls it." }).waitFor();
});

test("the exported file is complete and needs no server", async () => {
  await open("s-roman");
  await page.getByText("All three tests pass.").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("x")]);
  assert.equal(download.suggestedFilename(), "mend-the-failing-test-of-to-roman.html");
  const html = readFileSync(await download.path(), "utf8");
  assert.ok(!html.includes("<script"), "no script");
  const context = await browser.newContext({ offline: true });
  const file = await context.newPage();
  await file.setContent(html);
  assert.equal(await file.locator(".row").count(), fold("s-roman", double.sessions.get("s-roman").script.events).entries.length);
  await file.locator("summary", { hasText: "cargo test" }).first().click();
  await file.getByText("test nine ... FAILED").first().waitFor();
  assert.ok(await file.locator("img").evaluate((image) => image.src.startsWith("data:image/png")));
  await shot("export-light", file);
  await context.close();
});

test("hostile text is shown as text, also in the exported file", async () => {
  await open("s-hostile");
  await page.locator(".row.end").waitFor();
  await page.keyboard.press("Home");
  await page.locator(".row.input", { hasText: HOSTILE_HTML }).waitFor();
  for (let i = 0; i < 12; i += 1) {
    await page.keyboard.press("j");
    await page.keyboard.press("o");
    await page.waitForTimeout(60);
    assert.deepEqual(await injected(page), HARMLESS);
  }
  await page.keyboard.press("Home");
  await page.getByText("user⟨U+202E⟩nimda⟨U+202C⟩ and zero⟨U+200B⟩width").waitFor();
  await page.getByText("[click me](javascript:window.hacked=1)").waitFor();
  await shot("hostile-light");
  const [download] = await Promise.all([page.waitForEvent("download", { timeout: 60_000 }), page.keyboard.press("x")]);
  const context = await browser.newContext({ offline: true });
  const file = await context.newPage();
  const directory = mkdtempSync(join(tmpdir(), "console-"));
  await download.saveAs(join(directory, "export.html"));
  await file.goto(pathToFileURL(join(directory, "export.html")).href, { timeout: 60_000, waitUntil: "domcontentloaded" });
  assert.ok((await file.locator("main .row").count()) > 5);
  assert.deepEqual(await injected(file), HARMLESS);
  rmSync(directory, { recursive: true });
  await context.close();
});

test("a line of 10 MB is cut and can be read on", async () => {
  await open("s-hostile");
  const start = Date.now();
  const summary = page.locator("summary", { hasText: "head -c 10000000" });
  await page.locator(".row.end").waitFor();
  await page.keyboard.press("Home");
  for (let i = 0; i < 5; i += 1) await page.keyboard.press("j");
  await summary.click();
  await page.getByRole("button", { name: /Show earlier output/ }).waitFor();
  assert.ok(Date.now() - start < 5_000, "it takes too long");
  const length = () => page.locator(".row.call pre").last().evaluate((pre) => pre.textContent.length);
  const before = await length();
  assert.ok(before <= 20_100);
  await page.getByRole("button", { name: /Show earlier output/ }).click();
  assert.ok((await length()) > before);
});

test("everything works by keyboard alone", async () => {
  await open("");
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Show these keys").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("w");
  await page.locator(".card").waitFor();
  await page.keyboard.press("a");
  assert.ok(await page.locator(".card").evaluate((card) => card === document.activeElement));
  await page.keyboard.press("n");
  await page.keyboard.type("not now");
  await page.keyboard.press("Escape");
  await page.keyboard.press("y");
  await page.locator(".card").waitFor({ state: "detached" });
  assert.equal(posts("approvals")[0].body.decision, "approve");
  await page.keyboard.press("c");
  await page.keyboard.type("thanks");
  await page.keyboard.press("Enter");
  await page.locator(".row.input", { hasText: "thanks" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("i");
  assert.ok(await page.locator("#panel").isHidden());
  await page.keyboard.press("k");
  assert.ok(await page.evaluate(() => document.activeElement.matches("article.row")));
  await page.keyboard.press("[");
  assert.ok(await page.evaluate(() => document.activeElement.matches("article.row.input")));
  await page.keyboard.press("s");
  assert.ok(await page.evaluate(() => document.activeElement.closest("#sessions") !== null));
  await page.keyboard.press("n");
  await page.getByRole("dialog").getByLabel("Message").waitFor();
  await page.keyboard.type("A new task");
  await page.keyboard.press("Control+Enter");
  await page.locator(".row.input", { hasText: "A new task" }).waitFor();
});

test("every control is reached by Tab with visible focus", async () => {
  await open("s-approval");
  await page.locator(".card").waitFor();
  const seen = new Set();
  for (let i = 0; i < 130; i += 1) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const visible = element === document.body || style.outlineStyle !== "none" || element.classList.contains("skip");
      return `${visible ? "" : "no outline: "}${element.getAttribute("aria-label") || element.textContent.trim().slice(0, 30)}`;
    });
    seen.add(name);
  }
  assert.deepEqual([...seen].filter((name) => name.startsWith("no outline")), []);
  for (const name of ["Search sessions", "Filter by state", "Replay", "Approve", "Deny …", "Message", "Mode", "Steer", "Overview"]) assert.ok(seen.has(name), `${name} in ${[...seen].join(", ")}`);
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe-core finds nothing, ${colorScheme}`, async () => {
    for (const viewport of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
      const other = await pages.open({ colorScheme, viewport, reducedMotion: "reduce" });
      for (const id of ["", "s-roman", "s-approval", "s-agents", "s-stream", "s-long"]) {
        await other.goto(`${double.url}/#/`);
        await other.waitForSelector(".sessions a");
        if (id) {
          await other.goto(`${double.url}/#/s/${id}`);
          await other.waitForSelector(id === "s-stream" ? ".composer" : "main .row");
          await other.waitForTimeout(150);
          const closed = other.locator(".row.call > details:not([open]) > summary:visible");
          await closed.evaluateAll((summaries) => { for (const summary of summaries) summary.click(); });
          await other.waitForTimeout(150);
        }
        assert.deepEqual(await violations(other), [], `${id} at ${viewport.width}`);
        await shot(`${id || "list"}-${viewport.width}-${colorScheme}`, other);
      }
      await other.keyboard.press("?");
      assert.deepEqual(await violations(other), [], `keys at ${viewport.width}`);
      await other.keyboard.press("Escape");
      await other.keyboard.press("r");
      assert.deepEqual(await violations(other), [], `replay at ${viewport.width}`);
      await other.context().close();
    }
  });
}

test("a width of 390 pixels has no sideways scrolling, and all it needs", async () => {
  const phone = await pages.open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const wide = () => phone.evaluate(() => document.documentElement.scrollWidth);
  await open("", phone);
  assert.equal(await wide(), 390);
  await phone.getByText("Wants to change a file").tap();
  await phone.locator(".card").waitFor();
  assert.equal(await wide(), 390);
  for (const name of ["Approve", "Deny …", "Steer", "Queue", "Interrupt", "Replay", "Panel"]) {
    const box = await phone.getByRole("button", { name, exact: true }).boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 390 && box.height >= 24, `${name} ${JSON.stringify(box)}`);
  }
  await phone.getByRole("button", { name: "Panel" }).tap();
  await phone.getByRole("tab", { name: "Overview" }).waitFor();
  assert.equal(await wide(), 390);
  await phone.getByRole("button", { name: "Close" }).tap();
  await phone.getByRole("link", { name: "Sessions" }).tap();
  await phone.getByLabel("Search sessions").waitFor();
  await phone.context().close();
});

test("dark and light follow the system until the user chooses", async () => {
  await open("s-roman");
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await back();
  await page.emulateMedia({ colorScheme: "light" });
  const light = await back();
  assert.notEqual(dark, light);
  await page.keyboard.press("t");
  await page.keyboard.press("t");
  assert.equal(await back(), dark);
  await page.reload();
  await page.waitForSelector("main .row");
  assert.equal(await back(), dark);
});

test("a cut stream continues without loss or doubling", async () => {
  await open("s-stream");
  const session = double.sessions.get("s-stream");
  session.speed = 60;
  await page.getByLabel("Message", { exact: true }).fill("Explain it");
  await page.keyboard.press("Enter");
  await page.locator(".row.text.open", { hasText: "The test expects" }).waitFor();
  for (let i = 0; i < 3; i += 1) {
    double.cut();
    await page.waitForTimeout(700);
  }
  await until(() => session.state() === "IDLE", "the run ends");
  await page.locator(".row.end").waitFor();
  const shown = await page.locator(".row.text .markdown").innerText();
  const said = session.script.events.find((event) => event.kind === "ASSISTANT_TEXT_END").data.text;
  const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "").replace(/rust(?=const)/, "");
  assert.equal(letters(shown), letters(said));
  assert.equal(await page.locator("main .row").count(), 4);
});

test("a text that is open when the stream is cut is whole again while it is open", async () => {
  await open("s-stream");
  const session = double.sessions.get("s-stream");
  session.speed = 100;
  session.submit({ text: "x" });
  await page.locator(".row.text.open", { hasText: "nine" }).waitFor();
  double.cut();
  await page.waitForTimeout(900);
  const [shown, said] = [await page.locator(".row.text .markdown").innerText(), session.streaming.text];
  assert.ok(said.replaceAll(/\s+/g, " ").startsWith(shown.trim().replaceAll(/\s+/g, " ").slice(0, -1)), `${shown} / ${said}`);
  assert.ok(shown.length > 60);
});

test("a reset starts the session from its beginning", async () => {
  await open("s-roman");
  await page.getByText("All three tests pass.").waitFor();
  const opened = () => double.paths.filter((path) => path.startsWith("GET /v1/streams") && /%3As-roman(%2C|$)/.test(path)).length;
  const before = opened();
  for (const stream of double.sessions.get("s-roman").readers) stream.write('event: reset\ndata: {"reason":"rewritten"}\n\n');
  await until(() => opened() === before + 1, "the stream is opened again");
  await page.getByText("All three tests pass.").waitFor();
  assert.equal(double.paths.filter((path) => path.includes("s-roman%40")).length, 0, "it begins with the first event");
  await until(async () => (await page.locator(".row.end").count()) === 1, "one end");
});

test("a token that only reads sees no controls that it cannot use", async () => {
  double.scopes = ["read"];
  await open("s-approval");
  await page.locator(".card").waitFor();
  await page.getByText("This token cannot decide").waitFor();
  await page.getByText("This token can only read").waitFor();
  await page.locator("summary", { hasText: "More" }).click();
  for (const name of ["Approve", "New", "Send", "Steer", "Queue", "Interrupt", "Fork after this", "End the session …", "Delete the session …", "Compact the context"]) {
    assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  }
  await page.getByRole("button", { name: "Export as HTML" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".card").focus();
  for (const key of ["y", "n", "Control+.", "n"]) await page.keyboard.press(key);
  assert.deepEqual(double.log, []);
  assert.deepEqual(await violations(page), []);
});

test("the buttons of the composer are whole at each width", async () => {
  await open("s-stream");
  double.sessions.get("s-stream").speed = 5;
  double.sessions.get("s-stream").submit({ text: "x" });
  await page.getByRole("button", { name: "Steer" }).waitFor();
  for (const width of [1440, 1280, 1200, 1024, 900, 800, 600, 390]) {
    await page.setViewportSize({ width, height: 900 });
    const cut = await page.locator(".composer .actions").evaluate((actions) => {
      const { left, right, bottom } = actions.closest("main").getBoundingClientRect();
      const controls = [...actions.querySelectorAll("button, select")].filter((element) => element.checkVisibility());
      const isCut = (box) => box.left < left || box.right > right + 0.5 || box.bottom > bottom + 0.5;
      return controls.filter((element) => isCut(element.getBoundingClientRect())).map((element) => element.textContent);
    });
    assert.deepEqual(cut, [], `${width} px`);
  }
});

test("the tabs of a browser share one connection, and decide in each", async () => {
  await open("s-roman");
  const tabs = [];
  for (const id of ["s-agents", "s-stream", "s-approval", "s-roman", "s-approval"]) {
    const tab = await page.context().newPage();
    await open(id, tab);
    tabs.push(tab);
  }
  await until(() => double.connections() === 1, "one connection for six tabs");
  await tabs[2].bringToFront();
  await tabs[2].getByRole("button", { name: "Approve" }).click();
  await until(() => posts("/approvals/").length === 1, "the decision is sent");
  await tabs[4].bringToFront();
  await until(async () => (await tabs[4].locator(".approvals .card").count()) === 0, "the other tab knows");
  for (const tab of tabs) await tab.close();
  await page.bringToFront();
  await page.locator(".sessions a", { hasText: "Asks for the version" }).click();
  await page.locator("main .row").first().waitFor();
  await until(() => double.connections() === 1, "one connection for one tab");
});

test("a browser without shared workers has a connection for each tab that is seen", async () => {
  await page.addInitScript(() => {
    delete window.SharedWorker;
  });
  await open("s-roman");
  await page.getByText("All three tests pass.").waitFor();
  await until(() => double.connections() === 1, "one connection");
  double.sessions.get("s-roman").add("USER_INPUT", { content: "one more thing" });
  await page.getByText("one more thing").first().waitFor();
});

test("the token of the address signs in and disappears; without it there is a form", async () => {
  await double.close();
  double = await startDouble({ token: "secret" });
  pages.origins.clear();
  await page.goto(`${double.url}/#token=secret`);
  await page.waitForSelector(".sessions a");
  assert.equal(new URL(page.url()).hash, "");
  const other = await pages.open();
  await other.goto(double.url);
  await other.getByLabel("Token").fill("wrong");
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByText("the token is wrong").waitFor();
  assert.deepEqual(await violations(other), []);
  await other.getByLabel("Token").fill("secret");
  await other.keyboard.press("Enter");
  await other.waitForSelector(".sessions a");
  await other.context().close();
});

test("a session is deleted after a question", async () => {
  await open("s-question");
  await page.getByText("More", { exact: true }).click();
  await page.getByRole("button", { name: "Delete the session …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Choose a session").waitFor();
  assert.deepEqual(double.log.map((entry) => entry.method), ["DELETE"]);
});

test("a request that fails on the way is repeated with the same key", async () => {
  await open("s-stream");
  let failed = 0;
  const keys = [];
  await page.route("**/submit", (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    failed += 1;
    return failed === 1 ? route.abort("connectionreset") : route.continue();
  });
  await page.getByLabel("Message", { exact: true }).fill("Once");
  await page.keyboard.press("Enter");
  await page.locator(".row.input", { hasText: "Once" }).waitFor();
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
  assert.equal(await page.locator(".row.input").count(), 1);
});
