// The scrubber: steps through the events of a session, or plays them.

import { button, h, select } from "./dom.js";
import { clock } from "./format.js";
import { pause, Replay } from "./replay.js";

/**
 * @import { Log } from "./replay.js"
 * @import { SessionState } from "./types.js"
 */

export class ReplayBar {
  /**
   * @param {Log} log
   * @param {(state: SessionState) => void} show
   * @param {() => void} leave
   */
  constructor(log, show, leave) {
    this.replay = new Replay(log);
    this.show = show;
    this.speed = 1;
    this.timer = 0;
    this.frame = 0;
    this.label = h("div", { class: "position cut" });
    this.range = h("input", { type: "range", min: 0, max: this.replay.length, step: 1, "aria-label": "Position in the session" });
    this.range.addEventListener("input", () => this.seek(Number(this.range.value)));
    this.play = button("Play", () => this.toggle(), { class: "primary" });
    const speeds = [1, 4, 16, 64].map((value) => ({ value: String(value), text: `${value}×` }));
    this.element = h(
      "section",
      { class: "replay", "aria-label": "Replay" },
      this.label,
      this.range,
      h(
        "div",
        { class: "actions" },
        button("Previous turn", () => this.turn(-1)),
        button("Back", () => this.step(-1), { "aria-label": "One event back" }),
        this.play,
        button("Forward", () => this.step(1), { "aria-label": "One event forward" }),
        button("Next turn", () => this.turn(1)),
        select(speeds, "1", (value) => (this.speed = Number(value)), { "aria-label": "Speed" }),
        h("span", { class: "space" }),
        button("Leave the replay", leave),
      ),
    );
    this.draw();
  }

  destroy() {
    this.pause();
    cancelAnimationFrame(this.frame);
  }

  /** @param {number} position */
  seek(position) {
    this.pause();
    this.replay.seek(position);
    this.draw();
  }

  /** @param {1|-1} step */
  step(step) {
    this.seek(this.replay.position + step);
  }

  /** @param {1|-1} step */
  turn(step) {
    this.pause();
    this.replay.seekTurn(step);
    this.draw();
  }

  toggle() {
    if (this.timer) {
      this.pause();
      return;
    }
    if (this.replay.position >= this.replay.length) this.replay.seek(0);
    this.play.textContent = "Pause";
    this.tick();
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.play.textContent = "Play";
  }

  tick() {
    const { replay } = this;
    replay.seek(replay.position + 1);
    this.draw();
    const { events } = replay.log;
    if (replay.position >= events.length) {
      this.pause();
      return;
    }
    const wait = replay.position > 0 ? pause(events[replay.position - 1], events[replay.position], this.speed) : 0;
    this.timer = window.setTimeout(() => this.tick(), Math.max(8, wait));
  }

  /** Shows the position; the timeline follows with the next frame. */
  draw() {
    const { replay } = this;
    const event = replay.log.events[replay.position - 1];
    this.range.max = String(replay.length);
    this.range.value = String(replay.position);
    const text = `Event ${replay.position} of ${replay.length}${event ? ` · ${clock(Date.parse(event.timestamp))} · ${event.kind}` : ""}`;
    this.label.textContent = text;
    this.range.setAttribute("aria-valuetext", text);
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.show(replay.state);
    });
  }
}
