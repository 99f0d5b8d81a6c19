import { PintleError } from "./error.js";

/** Parses a message of the server. */
export function parseJson<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new PintleError("the server sent something that is not JSON", { cause });
  }
}
