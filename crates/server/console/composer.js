// The field for messages: it submits, steers and queues. A run that is steered may have ended meanwhile; then the message begins
// another one.

import * as api from "./api.js";
import { announce, button, fill, h, select } from "./dom.js";
import { bytes } from "./format.js";
import { firstLine } from "./text.js";

/** @import { ImageData, Model, Phase, Session } from "./types.js" */

const MODES = ["plan", "ask", "edit", "auto"];
const EFFORTS = ["low", "medium", "high"];
const MAX_IMAGE = 10 * 1024 * 1024;

/** @typedef {"submit"|"say"|"follow-up"} How */

export class Composer {
  /**
   * @param {string} id
   * @param {(error: unknown) => void} failed
   */
  constructor(id, failed) {
    this.id = id;
    this.failed = failed;
    /** @type {Phase} */
    this.phase = "IDLE";
    /** @type {(ImageData & {size: number})[]} */
    this.images = [];
    /** @type {{how: How, text: string}[]} messages that the session has not taken yet */
    this.pending = [];
    this.sending = false;
    /** @type {Model[]} */
    this.models = [];
    this.text = h("textarea", { rows: 1, "aria-label": "Message", placeholder: "Message", data: { focus: "message" } });
    this.text.value = sessionStorage.getItem(this.draftKey()) ?? "";
    this.send = button("Send", () => void this.deliver(this.first()), { class: "primary" });
    this.queue = button("Queue", () => void this.deliver("follow-up"), { title: "Alt+Enter" });
    this.stop = button("Interrupt", () => void this.control("interrupt"), { title: "Ctrl+.", class: "danger" });
    this.file = h("input", { type: "file", accept: "image/*", multiple: true, class: "hidden-text", tabindex: "-1", "aria-label": "Images" });
    this.attach = button("Image", () => this.file.click(), { class: "quiet" });
    this.waiting = h("ul", { class: "outbox", "aria-label": "Messages that wait" });
    this.attached = h("ul", { class: "attached", "aria-label": "Images of the message" });
    this.settings = h("div", { class: "settings" });
    this.hint = h("span", { class: "dim keys" });
    this.element = h(
      "section",
      { class: "composer", "aria-label": "Composer", data: { needs: "run" } },
      this.waiting,
      this.attached,
      this.text,
      h("div", { class: "actions" }, this.settings, this.attach, this.file, h("span", { class: "space" }), this.hint, this.stop, this.queue, this.send),
    );
    this.listen();
    this.update(null);
  }

  draftKey() {
    return `draft ${this.id}`;
  }

  listen() {
    this.text.addEventListener("input", () => this.changed());
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.file.addEventListener("change", () => this.addFiles(this.file.files));
    this.text.addEventListener("paste", (event) => {
      if ((event.clipboardData?.files.length ?? 0) > 0) {
        event.preventDefault();
        void this.addFiles(event.clipboardData?.files);
      }
    });
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      void this.addFiles(event.dataTransfer?.files);
    });
  }

  changed() {
    sessionStorage.setItem(this.draftKey(), this.text.value.slice(0, 100_000));
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, 320)}px`;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.isComposing || event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void this.deliver(event.altKey && this.phase === "PROCESSING" ? "follow-up" : this.first());
  }

  /**
   * Returns how the Enter key sends the message.
   * @returns {How}
   */
  first() {
    return this.phase === "PROCESSING" ? "say" : "submit";
  }

  /** @param {FileList|null|undefined} files */
  async addFiles(files) {
    for (const file of files ?? []) {
      if (!file.type.startsWith("image/")) continue;
      if (file.size > MAX_IMAGE) {
        this.failed(new Error(`${file.name} is larger than ${bytes(MAX_IMAGE)}`));
        continue;
      }
      this.images.push({ data: await base64(file), media_type: file.type, size: file.size });
    }
    this.file.value = "";
    this.drawImages();
  }

  drawImages() {
    const items = this.images.map((image, index) => {
      const remove = () => {
        this.images.splice(index, 1);
        this.drawImages();
        this.text.focus();
      };
      const label = `${image.media_type}, ${bytes(image.size)}`;
      return h("li", null, h("img", { src: `data:${image.media_type};base64,${image.data}`, alt: label }), button("Remove", remove, { class: "quiet", "aria-label": `Remove ${label}` }));
    });
    fill(this.attached, ...items);
    this.attached.hidden = items.length === 0;
  }

  /** @param {How} how */
  async deliver(how) {
    const text = this.text.value;
    if (this.sending || (!text.trim() && this.images.length === 0)) return;
    this.sending = true;
    this.send.disabled = true;
    const images = this.images.map(({ data, media_type }) => ({ data, media_type }));
    try {
      await api.say(this.id, how, { text, ...(images.length > 0 ? { images } : {}) });
      this.pending.push({ how, text });
      this.text.value = "";
      this.images = [];
      this.changed();
      this.drawImages();
      this.drawPending();
      announce({ submit: "Sent", say: "Sent to the run", "follow-up": "Queued" }[how]);
    } catch (error) {
      this.failed(error);
    } finally {
      this.sending = false;
      this.send.disabled = this.phase === "CLOSED";
    }
  }

  /**
   * Notes that the session has taken a message.
   * @param {string} text
   */
  taken(text) {
    const at = this.pending.findIndex((message) => message.text === text);
    if (at < 0) return;
    this.pending.splice(at, 1);
    this.drawPending();
  }

  drawPending() {
    const names = { submit: "sent", say: "steering", "follow-up": "queued" };
    fill(this.waiting, ...this.pending.map(({ how, text }) => h("li", null, h("span", { class: "badge" }, names[how]), " ", h("span", { class: "cut" }, firstLine(text)))));
    this.waiting.hidden = this.pending.length === 0;
  }

  /** @param {"interrupt"|"abort"} what */
  async control(what) {
    try {
      await api.control(this.id, what);
      announce("Interrupt sent");
    } catch (error) {
      this.failed(error);
    }
  }

  /** @param {Phase} phase */
  setPhase(phase) {
    if (phase === this.phase) return;
    this.phase = phase;
    if (phase === "CLOSED") this.pending = [];
    this.update(null);
    this.drawPending();
  }

  /** @param {Session|null} session */
  update(session) {
    const running = this.phase === "PROCESSING";
    this.send.textContent = running ? "Steer" : this.phase === "AWAITING_INPUT" ? "Answer" : "Send";
    this.queue.hidden = !running;
    this.stop.hidden = !running;
    const closed = this.phase === "CLOSED";
    this.text.disabled = closed;
    this.send.disabled = closed;
    this.text.placeholder = closed ? "The session is closed. Fork it to continue." : running ? "Steer the run, or queue what comes next" : this.phase === "AWAITING_INPUT" ? "Your answer" : "Message";
    fill(this.hint, h("kbd", null, "Enter"), running ? " steers, " : " sends", ...(running ? [h("kbd", null, "Alt+Enter"), " queues"] : []));
    this.waiting.hidden = this.pending.length === 0;
    this.attached.hidden = this.images.length === 0;
    if (session) this.drawSettings(session);
  }

  /**
   * Changes a setting. One that the server refuses is shown as it was.
   * @param {Session} session
   * @param {Record<string, string>} change
   */
  async change(session, change) {
    try {
      this.drawSettings(await api.patch(this.id, change));
    } catch (error) {
      this.failed(error);
      this.settings.dataset.signature = "";
      this.drawSettings(session);
    }
  }

  /** @param {Session} session */
  drawSettings(session) {
    const signature = JSON.stringify([session.mode, session.model, session.effort, this.models.length]);
    if (this.settings.dataset.signature === signature) return;
    this.settings.dataset.signature = signature;
    const active = document.activeElement instanceof HTMLSelectElement && this.settings.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    const change = (/** @type {string} */ name) => (/** @type {string} */ value) => void this.change(session, { [name]: value });
    fill(
      this.settings,
      choice("Mode", MODES, session.mode, change("mode")),
      choice("Model", this.models.map((model) => model.id), session.model, change("model")),
      choice("Effort", EFFORTS, session.effort, change("effort")),
    );
    if (active) /** @type {HTMLElement|null} */ (this.settings.querySelector(`[aria-label="${active}"]`))?.focus();
  }
}

/**
 * Creates a select that also has the current value if it is none of the known ones.
 * @param {string} name
 * @param {string[]} values
 * @param {string|undefined} value
 * @param {(value: string) => void} changed
 */
function choice(name, values, value, changed) {
  const all = value === undefined || values.includes(value) ? values : [value, ...values];
  const options = all.map((item) => ({ value: item, text: item }));
  if (value === undefined) options.unshift({ value: "", text: `${name.toLowerCase()}: default` });
  return select(options, value ?? "", (chosen) => chosen && changed(chosen), { "aria-label": name, title: name });
}

/** @param {File} file */
async function base64(file) {
  const data = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let i = 0; i < data.length; i += 0x8000) text += String.fromCharCode(...data.subarray(i, i + 0x8000));
  return btoa(text);
}
