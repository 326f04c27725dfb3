import type { RateLimitRequest } from '../../codec/messages.js';
import { StorageError } from '../../limiter/bucket-store.js';
import { timerMs } from '../../limiter/clock.js';
import type { AwaitedRead } from '../../limiter/control.js';
import { turn, withTimeout } from '../../runtime/turns.js';
import { CALLER_WITHOUT_DEADLINE, type Caller, replyMarginMicros } from '../caller.js';
import { bytesOf } from '../large-message.js';
import { CALLER_CANCELLED, type Refusal } from '../refusal.js';
import { ShouldRateLimit } from '../should-rate-limit.js';
import type { ShouldRateLimitOptions } from '../should-rate-limit-options.js';
import { WaitingRequests } from '../waiting-requests.js';

/** Calls that waited and are decided in one turn of the event loop. */
export const DECISIONS_PER_TURN = 50;
/** What a waiting call takes beside its message, about. */
const CALL_BYTES = 500;

/**
 * Has calls wait, within their time, until blocks and exemptions were read for the first time: without them a blocked
 * caller would pass. Calls whose time ends before are answered by `on_store_failure`, as if the store had been late.
 */
export class FirstReadGate {
  readonly #firstRead: AwaitedRead;
  readonly #service: ShouldRateLimit;
  /** Decides without the store. */
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
    const error = new StorageError('timeout', 'blocks and exemptions were not read from Redis in time');
    const store = { take: () => error, close: async () => {} };
    this.#withoutStore = new ShouldRateLimit({ ...options, store });
  }

  /** {@link ShouldRateLimit.handle}. */
  handle(
    message: Uint8Array,
    caller: Caller = CALLER_WITHOUT_DEADLINE,
  ): ReturnType<ShouldRateLimit['handle']> {
    if (this.#firstRead.awaited === undefined) return this.#service.handle(message, caller);
    // The message is only there until this returns.
    const copy = new Uint8Array(message);
    return this.#decideAfterRead(copy.length, caller, (service, waiter) => service.handle(copy, waiter));
  }

  /** {@link ShouldRateLimit.decide}. */
  decide(
    request: RateLimitRequest,
    caller: Caller = CALLER_WITHOUT_DEADLINE,
  ): ReturnType<ShouldRateLimit['decide']> {
    if (this.#firstRead.awaited === undefined) return this.#service.decide(request, caller);
    return this.#decideAfterRead(bytesOf(request), caller, (service, waiter) =>
      service.decide(request, waiter),
    );
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
    // What is known of the caller is only there until this returns.
    const waiter: Caller = {
      deadlineMicros: Math.min(deadlineMicros, now + storeTimeoutMicros),
      cancelled: () => caller.cancelled(),
      connection,
      ...(requestName !== undefined && { requestName }),
      ...(trace !== undefined && { trace }),
    };
    const release = this.#waiting.begin(bytes + CALL_BYTES, connection);
    const isRead = release !== undefined && (await this.#waitForRead(untilMicros));
    release?.();
    if (waiter.cancelled()) return CALLER_CANCELLED;
    return decide(isRead ? this.#service : this.#withoutStore, waiter);
  }

  /** Whether nobody waits any more before `untilMicros`. */
  async #waitForRead(untilMicros: number): Promise<boolean> {
    for (;;) {
      const { awaited } = this.#firstRead;
      if (awaited === undefined) return true;
      const leftMs = Math.max(0, timerMs(untilMicros - this.#options.clock.monotonicMicros()));
      const isRead = awaited.then(() => true);
      if (!(await withTimeout(leftMs, isRead, () => false))) return false;
      // Those who have waited take turns with others.
      if (++this.#decided % DECISIONS_PER_TURN === 0) this.#turn = this.#turn.then(turn);
      await this.#turn;
    }
  }
}
