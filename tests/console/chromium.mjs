// Pages in Chromium, with a record of what they report and of the origins that they ask.
//
// CHROMIUM names the executable, and TIMEOUT the milliseconds that a page has for each step.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const TIMEOUT = Number(process.env.TIMEOUT ?? 120_000);

// Answers that a page expects, and connections that a test cuts.
const EXPECTED = /40[149]|ERR_INCOMPLETE|ERR_CONNECTION|ERR_EMPTY/;

/** Starts the browser. */
export function launch() {
  const { chromium } = require("playwright-core");
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** Opens pages of one browser, each in a context of its own. */
export class Pages {
  constructor(browser) {
    this.browser = browser;
    this.faults = [];
    this.origins = new Set();
  }

  async open(options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT);
    page.on("pageerror", (error) => this.faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !EXPECTED.test(message.text())) this.faults.push(message.text());
    });
    page.on("request", (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol.startsWith("http")) this.origins.add(origin);
    });
    return page;
  }

  /** Closes all pages, and fails if one reported a fault or asked another origin. */
  async close(url) {
    for (const context of this.browser.contexts()) await context.close();
    assert.deepEqual(this.faults, [], "a page reported faults");
    assert.deepEqual([...this.origins], [new URL(url).origin], "a request left the origin");
  }
}

/** Runs axe-core with the rules of WCAG 2.2 AA and its own good practices. */
export async function violations(page) {
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  return found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

/** Returns what in a page would run code, or load from elsewhere, if a text were taken for HTML. */
export async function injected(page) {
  return page.evaluate(() => ({
    hacked: globalThis.hacked,
    bad: [...document.querySelectorAll("main *")].filter((element) => element.matches("script, svg, iframe, object, embed, [onerror], [onload]") || /^\s*javascript:/i.test(element.getAttribute("href") ?? "")).length,
    foreign: [...document.querySelectorAll("main img")].filter((image) => !/^(data|blob):/.test(image.src) && new URL(image.src).origin !== location.origin).length,
    links: [...document.querySelectorAll("main .markdown a")].every((link) => link.rel === "noopener noreferrer"),
  }));
}

export const HARMLESS = { hacked: undefined, bad: 0, foreign: 0, links: true };

/**
 * Returns the longest task of the page's main thread during a run, in milliseconds. Only time on the processor counts, so that
 * other processes do not matter.
 */
export async function longestTask(page, run) {
  const cdp = await page.context().newCDPSession(page);
  const events = [];
  cdp.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const complete = new Promise((resolve) => cdp.once("Tracing.tracingComplete", resolve));
  await cdp.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["toplevel"] } });
  await run();
  await cdp.send("Tracing.end");
  await complete;
  const mains = events.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`);
  const times = events.filter(({ name, pid, tid, tdur }) => name.endsWith("RunTask") && tdur !== undefined && mains.includes(`${pid} ${tid}`)).map(({ tdur }) => tdur / 1000);
  assert.ok(times.length > 0, "no tasks were traced");
  return Math.max(...times);
}

/** Waits until a condition holds. */
export async function until(condition, what) {
  const end = Date.now() + TIMEOUT;
  while (Date.now() < end) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`timed out: ${what}`);
}
