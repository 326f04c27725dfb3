import type { RateLimitRequest } from '../../codec/messages.js';
import { type BucketStore, StorageError } from '../../limiter/bucket-store.js';
import { timerMs } from '../../limiter/clock.js';
import type { AwaitedRead } from '../../limiter/control.js';
import { turn, withTimeout } from '../../runtime/turns.js';
import { CALLER_WITHOUT_DEADLINE, type Caller, ForwardingCaller, replyMarginMicros } from '../caller.js';
import { bytesOf } from '../large-message.js';
import { CALLER_CANCELLED, type Refusal } from '../refusal.js';
import { ShouldRateLimit } from '../should-rate-limit.js';
import type { ShouldRateLimitOptions } from '../should-rate-limit-options.js';
import { WaitingRequests } from '../waiting-requests.js';

/** Maximum number of delayed calls that are decided in one turn of the event loop. */
export const DECISIONS_PER_TURN = 50;
/** Approximate memory of a waiting call in addition to its message, in bytes. */
const CALL_BYTES = 500;

/**
 * Delays calls, within their deadlines, until blocks and exemptions have been read for the first time, because a
 * blocked caller would be allowed without them. If the deadline of a call passes first, `on_store_failure` decides the
 * call, as if the store had timed out.
 */
export class FirstReadGate {
  readonly #firstRead: AwaitedRead;
  readonly #service: ShouldRateLimit;
  /** Decides by the failure policies. Only ends of holds that it repeats after the first read reach the store. */
  readonly #withoutStore: ShouldRateLimit;
  readonly #options: ShouldRateLimitOptions;
  readonly #waiting: WaitingRequests;
  #decided = 0;
  #turn: Promise<void> = Promise.resolve();

  constructor(firstRead: AwaitedRead, options: ShouldRateLimitOptions) {
    this.#firstRead = firstRead;
    this.#options = options;
    this.#waiting = options.waiting ?? new WaitingRequests();
    this.#service = new ShouldRateLimit(options);
    const message = 'blocks and exemptions were not read from Redis in time';
    const error = new StorageError('timeout', message, { unsent: true });
    const store: BucketStore = {
      take: (...take) => (firstRead.awaited === undefined ? options.store.take(...take) : error),
      close: async () => {},
    };
    this.#withoutStore = new ShouldRateLimit({ ...options, store });
  }

  /** Decides an encoded request, like {@link ShouldRateLimit.handle}. */
  handle(
    message: Uint8Array,
    caller: Caller = CALLER_WITHOUT_DEADLINE,
  ): ReturnType<ShouldRateLimit['handle']> {
    if (this.#firstRead.awaited === undefined) return this.#service.handle(message, caller);
    // The message is valid only until this method returns.
    const copy = new Uint8Array(message);
    return this.#decideAfterRead(copy.length, caller, (service, waiter) => service.handle(copy, waiter));
  }

  /** Decides a decoded request, like {@link ShouldRateLimit.decide}. */
  decide(
    request: RateLimitRequest,
    caller: Caller = CALLER_WITHOUT_DEADLINE,
  ): ReturnType<ShouldRateLimit['decide']> {
    if (this.#firstRead.awaited === undefined) return this.#service.decide(request, caller);
    return this.#decideAfterRead(bytesOf(request), caller, (service, waiter) =>
      service.decide(request, waiter),
    );
  }

  /** Waits for ends of holds, like {@link ShouldRateLimit.drainHolds}. */
  async drainHolds(graceMs: number): Promise<number> {
    const services = [this.#service, this.#withoutStore];
    const lost = await Promise.all(services.map((service) => service.drainHolds(graceMs)));
    return lost.reduce((sum, count) => sum + count, 0);
  }

  async #decideAfterRead<Answer>(
    bytes: number,
    caller: Caller,
    decide: (service: ShouldRateLimit, waiter: Caller) => Answer | Promise<Answer>,
  ): Promise<Answer | Refusal> {
    const { clock, storeTimeoutMicros } = this.#options;
    const now = clock.monotonicMicros();
    const { deadlineMicros, connection, requestName, trace } = caller;
    const remainingMicros = deadlineMicros - now;
    const untilMicros =
      now + Math.min(storeTimeoutMicros, remainingMicros - replyMarginMicros(remainingMicros));
    // The fields of the caller are valid only until this method returns.
    const waiter = new ForwardingCaller(caller, {
      deadlineMicros: Math.min(deadlineMicros, now + storeTimeoutMicros),
      connection,
      requestName,
      trace,
    });
    const release = this.#waiting.begin(bytes + CALL_BYTES, connection);
    const isRead = release !== undefined && (await this.#waitForRead(untilMicros));
    release?.();
    if (waiter.cancelled()) return CALLER_CANCELLED;
    return decide(isRead ? this.#service : this.#withoutStore, waiter);
  }

  /** Waits for the first read until `untilMicros`; returns whether it has ended. */
  async #waitForRead(untilMicros: number): Promise<boolean> {
    for (;;) {
      const { awaited } = this.#firstRead;
      if (awaited === undefined) return true;
      const leftMs = Math.max(0, timerMs(untilMicros - this.#options.clock.monotonicMicros()));
      const isRead = awaited.then(() => true);
      if (!(await withTimeout(leftMs, isRead, () => false))) return false;
      // Delayed calls take turns with other work.
      if (++this.#decided % DECISIONS_PER_TURN === 0) this.#turn = this.#turn.then(turn);
      await this.#turn;
    }
  }
}
