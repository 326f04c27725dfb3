import { systemClock } from '../../limiter/clock.js';
import { ignore } from '../../runtime/signal.js';
import type { SendCommand } from './connection/connection-options.js';
import { RedisReplyError, UnknownReplyError } from './connection/redis-error.js';
import type { ScriptBatch } from './script-batch.js';
import type { Script } from './take-script.js';

/** Bytes of each number in a reply. */
const NUMBER_BYTES = 8;

/** A call that was sent, and its reply. */
interface Attempt {
  /** The number of the call, which its reply repeats. */
  readonly number: number;
  readonly args: string[];
  readonly reply: Promise<Buffer>;
}

/** Runs the take script on batches. */
export class TakeScriptSender {
  readonly #script: Script;
  readonly #time: RedisTime;
  readonly #clock: (() => number) | undefined;
  /** Number of the latest call. */
  #number = 0;

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
    send('script', ['LOAD', this.#script.text]).catch(ignore);
  }

  /** Sends the call of a probe; resolves with the reply. */
  async runProbe(batch: ScriptBatch, send: SendCommand): Promise<readonly number[]> {
    const isWanted = (): boolean => true;
    return this.#complete(batch, send, isWanted, this.#send(batch, send));
  }

  /**
   * Calls either `onReply` or `onError`, asynchronously. `wanted` returns whether a caller still waits, so that a retry
   * is useful.
   */
  run(
    batch: ScriptBatch,
    send: SendCommand,
    wanted: () => boolean,
    onReply: (reply: readonly number[]) => void,
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
      const numbers = numbersOf(reply, first.number);
      if (numbers instanceof Error) onError(numbers);
      else if (batch.timeOnlyReply(numbers) === undefined) onReply(numbers);
      else retryIfNeeded();
    }, retryIfNeeded);
  }

  /** Resolves with the reply to the first attempt, or to a retry if the first attempt was not executed. */
  async #complete(
    batch: ScriptBatch,
    send: SendCommand,
    wanted: () => boolean,
    first: Attempt,
  ): Promise<readonly number[]> {
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
    { number, args, reply }: Attempt,
  ): Promise<readonly number[]> {
    let received: Buffer;
    try {
      received = await reply;
    } catch (error) {
      if (!(error instanceof RedisReplyError) || error.code !== 'NOSCRIPT' || !wanted()) throw error;
      // Redis has not executed the call. It restarted or flushed its scripts. EVAL loads the script again.
      args[0] = this.#script.text;
      received = await send('eval', args);
    }
    const numbers = numbersOf(received, number);
    if (numbers instanceof Error) throw numbers;
    return numbers;
  }

  #send(batch: ScriptBatch, send: SendCommand): Attempt {
    const { seenMicros, highestMicros } = this.#time;
    const now = String(this.#clock?.() ?? '');
    const number = ++this.#number;
    const args = batch.command(this.#script.sha1, number, now, seenMicros, highestMicros);
    return { number, args, reply: send('evalsha', args) };
  }
}

/** Returns the numbers of a reply after the number of the call. Returns an error for the reply to another call. */
function numbersOf(reply: Buffer, call: number): readonly number[] | UnknownReplyError {
  if (reply.length < NUMBER_BYTES || reply.length % NUMBER_BYTES !== 0) return new UnknownReplyError();
  if (reply.readDoubleLE() !== call) return new UnknownReplyError();
  const numbers: number[] = [];
  for (let at = NUMBER_BYTES; at < reply.length; at += NUMBER_BYTES) numbers.push(reply.readDoubleLE(at));
  return numbers;
}

/** Maximum backward step of Redis's clock that is waited out; MAX_STEP in take.lua. */
const MAX_STEP_MICROS = 1_000_000;

/** The latest time that the clock of a Redis, or of any of its servers, has ever shown, in microseconds. */
export interface HighestTime {
  micros: number;
}

/** Tracks the clock of one Redis, in microseconds. */
export class RedisTime {
  readonly #monotonicMicros: () => number;
  /** The latest known time; 0 if unknown. */
  #latestMicros = 0;
  readonly #highest: HighestTime;
  /** When that time was received, on the clock of deadlines. */
  #seenAtMicros = 0;

  /** `highest`: shared by the servers of a cluster, because a replica that takes over may have a slower clock. */
  constructor(monotonicMicros: () => number, highest: HighestTime = { micros: 0 }) {
    this.#monotonicMicros = monotonicMicros;
    this.#highest = highest;
  }

  /** The latest known time, or 0 if unknown. Redis's next time is not earlier. */
  get seenMicros(): number {
    return this.#latestMicros;
  }

  /** The latest time that has ever been known, also before the clock was set back; 0 if unknown. */
  get highestMicros(): number {
    return this.#highest.micros;
  }

  /**
   * Records a time of Redis. A small step back is ignored, because replies may arrive out of order. After a larger
   * step, the new time applies, as in take.lua.
   */
  note(nowMicros: number): void {
    if (nowMicros < this.#latestMicros && this.#latestMicros - nowMicros <= MAX_STEP_MICROS) return;
    this.#latestMicros = nowMicros;
    this.#highest.micros = Math.max(this.#highest.micros, nowMicros);
    this.#seenAtMicros = this.#monotonicMicros();
  }

  /** Returns the estimated current time of Redis's clock. */
  readonly estimatedMicros = (): number => {
    if (this.#latestMicros === 0) return systemClock.wallMicros();
    return this.#latestMicros + this.#monotonicMicros() - this.#seenAtMicros;
  };
}
