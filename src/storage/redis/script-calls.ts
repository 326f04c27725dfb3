import type { SendCommand } from './connection/connection-options.js';
import { RedisReplyError } from './connection/redis-error.js';
import type { RedisTime } from './redis-time.js';
import type { TakeBatch } from './take-batch.js';
import type { Script } from './take-script.js';

/** Runs the script on batches. */
export class ScriptCalls {
  readonly #script: Script;
  readonly #time: RedisTime;
  readonly #clock: (() => number) | undefined;

  /** `clock`: for tests, the time of buckets in microseconds. */
  constructor(script: Script, time: RedisTime, clock: (() => number) | undefined) {
    this.#script = script;
    this.#time = time;
    this.#clock = clock;
  }

  /** Resolves with the reply. `wanted` says whether a second try is worth it. */
  async run(batch: TakeBatch, send: SendCommand, wanted: () => boolean): Promise<unknown> {
    const reply = await this.#runOnce(batch, send, wanted);
    const time = batch.timeAlone(reply);
    if (time === undefined || !wanted()) return reply;
    // Nothing was done: this Redis's clock stepped, or this process was suspended, and the windows of a calendar were
    // sent for another time.
    this.#time.note(time);
    return this.#runOnce(batch, send, wanted);
  }

  async #runOnce(batch: TakeBatch, send: SendCommand, wanted: () => boolean): Promise<unknown> {
    const args = batch.command(this.#clock?.(), this.#time.seenMicros);
    const bound = { integers: batch.replyLength, textBytes: 0 };
    args.unshift(this.#script.sha1);
    try {
      return await send('evalsha', args, bound);
    } catch (error) {
      if (!(error instanceof RedisReplyError) || error.code !== 'NOSCRIPT' || !wanted()) throw error;
      // Nothing was done: Redis restarted or forgot its scripts. EVAL teaches it again.
      args[0] = this.#script.text;
      return send('eval', args, bound);
    }
  }
}
