import { ignore } from '../../runtime/ignore.js';
import type { ScriptClock } from './clock/script-clock.js';
import type { SendCommand } from './connection/connection-options.js';
import { RedisReplyError } from './connection/redis-error.js';
import { type ReplyBound, SHORT_TEXT } from './connection/reply-bound.js';
import type { RedisTime } from './redis-time.js';
import type { TakeBatch } from './take-batch.js';
import type { Script } from './take-script.js';

/** A call that was sent, and what comes of it. */
interface Attempt {
  readonly args: string[];
  readonly bound: ReplyBound;
  readonly reply: Promise<unknown>;
}

/** Runs the script on batches. */
export class ScriptCalls {
  readonly #script: Script;
  readonly #time: RedisTime;
  readonly #clock: ScriptClock;

  constructor(script: Script, time: RedisTime, clock: ScriptClock) {
    this.#script = script;
    this.#time = time;
    this.#clock = clock;
  }

  /** Spares the calls on a new connection the detour over NOSCRIPT; a user who may not load scripts takes it. */
  load(send: SendCommand): void {
    send('script', ['LOAD', this.#script.text], SHORT_TEXT).catch(ignore);
  }

  /** The first call on a new connection. Resolves with the reply. */
  async runFirst(batch: TakeBatch, send: SendCommand): Promise<unknown> {
    await this.#clock.begin(send);
    const isWanted = (): boolean => true;
    return this.#complete(batch, send, isWanted, this.#send(batch, send));
  }

  /** Calls one of `onReply` and `onError`, later. `wanted` says whether a second try is worth it. */
  run(
    batch: TakeBatch,
    send: SendCommand,
    wanted: () => boolean,
    onReply: (reply: unknown) => void,
    onError: (error: Error) => void,
  ): void {
    let first: Attempt;
    try {
      first = this.#send(batch, send);
    } catch (error) {
      queueMicrotask(() => onError(error as Error));
      return;
    }
    // What waits for more than the first reply costs more than the rest of a call: it is made where there is more.
    const goOn = (): void => void this.#complete(batch, send, wanted, first).then(onReply, onError);
    first.reply.then((reply) => {
      if (batch.timeOnlyReply(reply) === undefined) onReply(reply);
      else goOn();
    }, goOn);
  }

  /** Resolves with the reply, of the first try or another one. */
  async #complete(
    batch: TakeBatch,
    send: SendCommand,
    wanted: () => boolean,
    first: Attempt,
  ): Promise<unknown> {
    const reply = await this.#withSuppliedTime(batch, send, wanted, first);
    const time = batch.timeOnlyReply(reply);
    if (time === undefined || !wanted()) return reply;
    // Nothing was done: this Redis's clock stepped, or this process was suspended, and the windows of a calendar were
    // sent for another time.
    this.#time.note(time);
    return this.#withSuppliedTime(batch, send, wanted, this.#send(batch, send));
  }

  /** Once more, with the time, where Redis refuses that to the script. */
  async #withSuppliedTime(
    batch: TakeBatch,
    send: SendCommand,
    wanted: () => boolean,
    first: Attempt,
  ): Promise<unknown> {
    try {
      return await this.#withLoadedScript(send, wanted, first);
    } catch (error) {
      if (!(await this.#clock.canSupplyTimeAfter(error, send)) || !wanted()) throw error;
      return this.#withLoadedScript(send, wanted, this.#send(batch, send));
    }
  }

  async #withLoadedScript(
    send: SendCommand,
    wanted: () => boolean,
    { args, bound, reply }: Attempt,
  ): Promise<unknown> {
    try {
      return await reply;
    } catch (error) {
      if (!(error instanceof RedisReplyError) || error.code !== 'NOSCRIPT' || !wanted()) throw error;
      // Nothing was done: Redis restarted or forgot its scripts. EVAL teaches it again.
      args[0] = this.#script.text;
      return send('eval', args, bound);
    }
  }

  #send(batch: TakeBatch, send: SendCommand): Attempt {
    const args = batch.command(this.#script.sha1, this.#clock.argument(send), this.#time.seenMicros);
    const bound = { integers: batch.replyLength, textBytes: 0 };
    return { args, bound, reply: send('evalsha', args, bound) };
  }
}
