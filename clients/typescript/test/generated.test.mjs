import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { PintleClient } from "@pintle/client";

import { generate } from "../scripts/generate.mjs";
import { serve } from "./support.mjs";

// Operations that are for pages and load balancers.
const NOT_OF_CLIENTS = new Set(["followStreams", "logIn", "logOut", "readHealth", "readReadiness", "readToken"]);

const OPENAPI = new URL("../../../crates/server/openapi.json", import.meta.url);

test("generated files are up to date", async () => {
  for (const [name, text] of await generate()) {
    const found = readFileSync(new URL(`../src/${name}`, import.meta.url), "utf8");
    assert.ok(found === text, `src/${name} is not what its schema gives: run \`npm run generate\``);
  }
});

test("the OpenAPI file is the server's", async (t) => {
  const server = await serve(t, "[[turn]]\ntext = \"Hello.\"\n");
  const answer = await (await server.fetch("/v1/openapi.json")).json();
  assert.deepEqual(JSON.parse(readFileSync(OPENAPI, "utf8")), answer, "PINTLE_BIN is a binary of another version");
});

test("each operation has a method that sends its request", async () => {
  /** @type {{method: string, path: string, key: string | null}[]} */
  const sent = [];
  const client = new PintleClient({
    baseUrl: "http://127.0.0.1:1",
    fetch: async (input, init) => {
      const key = new Headers(init?.headers).get("idempotency-key");
      sent.push({ method: String(init?.method).toLowerCase(), path: new URL(String(input)).pathname, key });
      const headers = { "content-type": "text/event-stream" };
      return new Response(init?.method === "GET" ? "" : "{}", { headers });
    },
  });
  /** @type {Record<string, () => unknown>} */
  const calls = {
    listSessions: () => client.listSessions(),
    createSession: () => client.createSession(),
    readSession: () => client.readSession("{id}"),
    changeSession: () => client.changeSession("{id}", {}),
    deleteSession: () => client.deleteSession("{id}"),
    forkSession: () => client.forkSession("{id}", 1),
    submit: () => client.submit("{id}", { text: "x" }),
    followUp: () => client.followUp("{id}", { text: "x" }),
    say: () => client.say("{id}", { text: "x" }),
    steer: () => client.steer("{id}", { text: "x" }),
    interrupt: () => client.interrupt("{id}"),
    abort: () => client.abort("{id}"),
    compact: () => client.compact("{id}"),
    rewind: () => client.rewind("{id}", 1),
    listApprovals: () => client.listApprovals("{id}"),
    decide: () => client.decide("{id}", "{call_id}", { fingerprint: "f", decision: "approve" }),
    readHistory: () => client.readHistory("{id}"),
    readJournal: () => client.readJournal("{id}").next(),
    readBlob: () => client.readBlob("{id}", "{hash}"),
    listCheckpoints: () => client.listCheckpoints("{id}"),
    diff: () => client.diff("{id}"),
    restore: () => client.restore("{id}", { turns: 0 }),
    exportSession: () => client.exportSession("{id}"),
    auditSession: () => client.auditSession("{id}"),
    listModels: () => client.listModels(),
    listTools: () => client.listTools("{id}"),
    readCosts: () => client.readCosts(7),
    readMetrics: () => client.readMetrics(),
    followSession: () => {
      const abort = new AbortController();
      return client.events("{id}", { signal: abort.signal, onReconnect: () => abort.abort() }).next();
    },
    followSessions: () => {
      const abort = new AbortController();
      return client.sessionChanges({ signal: abort.signal, onReconnect: () => abort.abort() }).next();
    },
    listTasks: () => client.listTasks(),
    readTask: () => client.readTask("{id}"),
    reportTask: () => client.reportTask("{id}"),
    diffCandidate: () => client.diffCandidate("{id}", "{candidate}"),
    steerTask: () => client.steerTask("{id}", { text: "x" }),
    decideTask: () => client.decideTask("{id}", { gate: "result", decision: "approve" }),
    cancelTask: () => client.cancelTask("{id}"),
    followTask: () => {
      const abort = new AbortController();
      return client.taskEvents("{id}", { signal: abort.signal, onReconnect: () => abort.abort() }).next();
    },
  };
  const { paths } = JSON.parse(readFileSync(OPENAPI, "utf8"));
  const operations = [];
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { operationId }] of Object.entries(methods)) {
      if (NOT_OF_CLIENTS.has(operationId)) continue;
      operations.push(operationId);
      await calls[operationId]?.();
      const request = sent.pop();
      assert.deepEqual([request?.method, decodeURIComponent(request?.path ?? "")], [method, path], operationId);
      assert.equal(typeof request?.key, method === "get" ? "object" : "string", operationId);
    }
  }
  assert.deepEqual(Object.keys(calls).sort(), operations.sort());
});
