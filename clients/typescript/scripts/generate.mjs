// Generates the types of the interface and of the events from their schemas. Run by `npm run generate`.

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import openapiTS, { astToString } from "openapi-typescript";

const ROOT = new URL("../../../", import.meta.url);
const OPENAPI = "crates/server/openapi.json";
const EVENTS = "crates/agent/schema/events.json";

/** @param {string} path from the root of the repository */
function source(path) {
  return readFile(new URL(path, ROOT), "utf8");
}

/**
 * @param {string} from source of the types
 * @param {any} description OpenAPI document
 */
async function typesOf(from, description) {
  // `defaultNonNullable` would make properties with a default, such as `force`, required in the body of a request.
  const types = astToString(await openapiTS(description, { defaultNonNullable: false }));
  return `// Generated from ${from} by \`npm run generate\`. Do not edit.\n\n${types}`;
}

/** Returns an OpenAPI document without operations that has the schemas of the events. */
async function eventSchemas() {
  const text = await source(EVENTS);
  const { $defs, $schema: _, ...SessionEvent } = JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
  const info = { title: "Events", version: "1" };
  return { openapi: "3.1.0", info, paths: {}, components: { schemas: { SessionEvent, ...$defs } } };
}

/**
 * Returns the generated files: names in `src` and contents.
 * @returns {Promise<Map<string, string>>}
 */
export async function generate() {
  return new Map([
    ["schema.ts", await typesOf(OPENAPI, JSON.parse(await source(OPENAPI)))],
    ["event-schema.ts", await typesOf(EVENTS, await eventSchemas())],
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of await generate()) await writeFile(new URL(`../src/${name}`, import.meta.url), text);
}
