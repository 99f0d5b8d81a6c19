import { PintleError } from "./error.js";

/** Message of a stream of server-sent events. */
export interface Message {
  /** `message` if it has no name. */
  name: string;
  /** Id in this message; `undefined` if it has none. */
  id: string | undefined;
  data: string;
}

/** Parses the lines of a stream of server-sent events. */
export class MessageParser {
  readonly #limit: number;
  #name = "";
  #id: string | undefined;
  #data: string[] = [];
  #length = 0;

  /** @param limit longest data of a message, in UTF-16 code units */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the message that a line completes. */
  push(line: string): Message | undefined {
    if (line === "") return this.#complete();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    switch (field) {
      case "event":
        this.#name = value;
        break;
      case "id":
        if (!value.includes("\0")) this.#id = value;
        break;
      case "data":
        this.#length += value.length + 1;
        if (this.#length > this.#limit + 1) throw new PintleError(`a message is longer than the limit of ${this.#limit} characters`);
        this.#data.push(value);
        break;
      default:
      // Comments, and the delay for reconnects, which is the client's.
    }
    return undefined;
  }

  #complete(): Message | undefined {
    const message = { name: this.#name || "message", id: this.#id, data: this.#data.join("\n") };
    const hasData = this.#data.length > 0;
    this.#name = "";
    this.#id = undefined;
    this.#data = [];
    this.#length = 0;
    return hasData ? message : undefined;
  }
}
