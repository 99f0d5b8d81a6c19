// Actions on a session besides messages: forks, rewinds, export, its end.

import * as api from "./api.js";
import { confirm, editInput, previewRestore, previewRewind } from "./dialogs.js";
import { toast } from "./dom.js";
import { exportSession } from "./export.js";
import { rewindPreview, turnsBefore, turnsThrough } from "./turns.js";

/**
 * @import { Entry, HistoryTurn, Image, InputEntry, Session, SessionState } from "./types.js"
 *
 * @typedef {object} Target the session that the actions are for
 * @property {string} id
 * @property {Session|null} session
 * @property {boolean} destroyed
 * @property {{state: SessionState}} log
 * @property {{go: (id: string|null) => void, removed: (id: string) => void}} app
 */

export class SessionActions {
  /** @param {Target} target */
  constructor(target) {
    this.target = target;
    this.id = target.id;
  }

  /** @param {InputEntry} entry */
  edit(entry) {
    editInput(entry.text, async (text, how) => {
      const count = turnsBefore(await api.history(this.id), entry);
      if (how === "fork") {
        const fork = await api.fork(this.id, count);
        await api.say(fork.id, "submit", { text });
        this.target.app.go(fork.id);
      } else {
        await api.rewind(this.id, count);
        await api.say(this.id, "submit", { text });
      }
    });
  }

  /** @param {Entry} entry */
  async forkAfter(entry) {
    await this.attempt(async () => this.forkAt(turnsThrough(await api.history(this.id), entry)));
  }

  /** @param {number} turns */
  async forkAt(turns) {
    await this.attempt(async () => {
      const fork = await api.fork(this.id, turns);
      this.target.app.go(fork.id);
    }, "This is the fork");
  }

  /** @param {Entry} entry */
  async rewindBefore(entry) {
    await this.attempt(async () => {
      const history = await api.history(this.id);
      this.rewindTo(turnsBefore(history, entry), history);
    });
  }

  /**
   * @param {number} turns
   * @param {HistoryTurn[]} history
   */
  rewindTo(turns, history) {
    previewRewind(turns, rewindPreview(history, this.target.log.state, turns), () => {
      void this.attempt(async () => void (await api.rewind(this.id, turns)), "The conversation was rewound");
    });
  }

  /**
   * Restores the files of a checkpoint, after the changes were shown.
   * @param {string} checkpoint
   * @param {() => void} done
   */
  async restoreFiles(checkpoint, done) {
    await this.attempt(async () => {
      const plan = await api.restore(this.id, { checkpoint, dry_run: true });
      previewRestore(plan, (force) => void this.attempt(async () => {
        const { problems } = await api.restore(this.id, { checkpoint, force });
        done();
        if (problems.length > 0) throw new Error(problems.join("; "));
        toast("The files were restored");
      }));
    });
  }

  compact() {
    void this.attempt(async () => void (await api.control(this.id, "compact")), "A summary is requested");
  }

  end() {
    confirm("End the session", "Everything that runs is stopped. The session cannot be continued, only forked.", "End", () => {
      void this.attempt(async () => void (await api.control(this.id, "abort")), "The session is ending");
    });
  }

  remove() {
    confirm("Delete the session", "Its record is removed for good.", "Delete", () => {
      void this.attempt(async () => {
        await api.remove(this.id);
        this.target.app.removed(this.id);
      }, "The session was deleted");
    });
  }

  async export() {
    const { session, log } = this.target;
    await this.attempt(() => exportSession(session, log.state, (image) => this.imageUrl(image)), "The file is ready");
  }

  /** @param {Image} image */
  imageUrl(image) {
    return image.hash ? api.blobUrl(this.id, image.hash) : null;
  }

  /**
   * @param {() => Promise<void>} run
   * @param {string} [success]
   */
  async attempt(run, success) {
    try {
      await run();
      if (success) toast(success);
    } catch (error) {
      this.failed(error);
    }
  }

  /** @param {unknown} error */
  failed(error) {
    if (this.target.destroyed || (error instanceof api.ApiError && error.status === 401)) return;
    toast(error instanceof Error ? error.message : String(error), "error");
  }
}
