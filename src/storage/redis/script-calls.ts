import { ignore } from '../../runtime/ignore.js';
import type { SendCommand } from './connection/connection-options.js';
import { RedisReplyError } from './connection/redis-error.js';
import { type ReplyBound, SHORT_TEXT } from './connection/reply-bound.js';
import type { RedisTime } from './redis-time.js';
import type { TakeBatch } from './take-batch.js';
import type { Script } from './take-script.js';

/** A call that was sent, and its reply. */
interface Attempt {
  readonly args: string[];
  readonly bound: ReplyBound;
  readonly reply: Promise<unknown>;
}

/** Runs the take script on batches. */
export class ScriptCalls {
  readonly #script: Script;
  readonly #time: RedisTime;
  readonly #clock: (() => number) | undefined;

  /** `clock` replaces Redis's clock in tests. */
  constructor(script: Script, time: RedisTime, clock: (() => number) | undefined) {
    this.#script = script;
    this.#time = time;
    this.#clock = clock;
  }

  /**
   * Loads the script, so that calls on a new connection get no NOSCRIPT errors. A user without permission for SCRIPT
   * LOAD still gets them.
   */
  load(send: SendCommand): void {
    send('script', ['LOAD', this.#script.text], SHORT_TEXT).catch(ignore);
  }

  /** Sends the call of a probe; resolves with the reply. */
  async runProbe(batch: TakeBatch, send: SendCommand): Promise<unknown> {
    const isWanted = (): boolean => true;
    return this.#complete(batch, send, isWanted, this.#send(batch, send));
  }

  /**
   * Calls either `onReply` or `onError`, asynchronously. `wanted` returns whether a caller still waits, so that a retry
   * is useful.
   */
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
    // Awaiting a further reply costs more than the rest of a call, so it is done only if needed.
    const retryIfNeeded = (): void => void this.#complete(batch, send, wanted, first).then(onReply, onError);
    first.reply.then((reply) => {
      if (batch.timeOnlyReply(reply) === undefined) onReply(reply);
      else retryIfNeeded();
    }, retryIfNeeded);
  }

  /** Resolves with the reply to the first attempt, or to a retry if the first attempt was not executed. */
  async #complete(
    batch: TakeBatch,
    send: SendCommand,
    wanted: () => boolean,
    first: Attempt,
  ): Promise<unknown> {
    const reply = await this.#withLoadedScript(send, wanted, first);
    const time = batch.timeOnlyReply(reply);
    if (time === undefined || !wanted()) return reply;
    // Redis has not executed the call. Its clock stepped, or this process was suspended, so the calendar windows did
    // not contain the current time.
    this.#time.note(time);
    return this.#withLoadedScript(send, wanted, this.#send(batch, send));
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
      // Redis has not executed the call. It restarted or flushed its scripts. EVAL loads the script again.
      args[0] = this.#script.text;
      return send('eval', args, bound);
    }
  }

  #send(batch: TakeBatch, send: SendCommand): Attempt {
    const { seenMicros, highestMicros } = this.#time;
    const now = String(this.#clock?.() ?? '');
    const args = batch.command(this.#script.sha1, now, seenMicros, highestMicros);
    const bound = { integers: batch.replyLength, textBytes: 0 };
    return { args, bound, reply: send('evalsha', args, bound) };
  }
}
