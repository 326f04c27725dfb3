import type { Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import type { HeldHits } from '../../../src/limiter/holds/hold.js';
import { settlingRate } from '../../../src/limiter/local-rate.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { type ItemOptions, takeItem } from './take-items.js';

export interface HoldOptions extends ItemOptions {
  /** A new id by default. */
  readonly id?: string;
  readonly lifetimeMillis?: number;
}

let ids = 0;

/**
 * Returns a new id, as those of the first edition. Successive ids differ in their first digits, as random ones do, and
 * are in order, as stores list holds that end at the same time. They also differ in the ninth byte, which gives the
 * lowest bits of a hash: without it, nearly all holds of a table are in one chain.
 */
export function newHoldId(): string {
  const digits = (++ids).toString(16).padStart(7, '0');
  return `e${digits}`.padEnd(16, '0') + [...digits].reverse().join('').padEnd(8, '0');
}

/** Returns a {@link takeItem} that places a hold of one minute. */
export function holdItem(key: string, rate: Rate, options: HoldOptions = {}): Take {
  const { id = newHoldId(), lifetimeMillis = 60_000 } = options;
  return { ...takeItem(key, rate, options), holds: { id, lifetimeMillis } };
}

/** Returns the item that settles the hold of a take with `used` hits, as the service sends it. */
export function settlementTake(
  { key, hashTagLength, rate, hits: amount, holds }: Take,
  { fullAtMicros = 0, refillMicros }: Partial<Pick<HeldHits, 'fullAtMicros' | 'refillMicros'>>,
  used = 0,
): Take {
  if (holds === undefined) throw new Error(`the take from ${key} places no hold`);
  const over = rate.kind === 'concurrency' ? 0 : Math.max(0, used - amount);
  const refunded = rate.kind === 'concurrency' ? amount : Math.max(0, amount - used);
  return {
    key,
    hashTagLength,
    rate: settlingRate(rate),
    hits: over > 0 ? over : refunded,
    refund: over === 0,
    enforcement: 'observe',
    settles: { ...holds, amount, fullAtMicros, refillMicros },
  };
}

/** Returns the items that end the abandoned holds of a request, as the service sends them. */
export function abandonedEnds(takes: readonly Take[], outcomes: readonly TakeOutcome[]): readonly Take[] {
  return takes.flatMap((take, i) => {
    const outcome = outcomes[i] as TakeOutcome;
    return outcome.hold === 'abandoned' ? [settlementTake(take, outcome)] : [];
  });
}

/** Returns the item that settles the oldest hold of a bucket with `used` hits, as the service sends it. */
export function oldestItem({ key, hashTagLength, rate }: Take, used: number): Take {
  const common = { key, hashTagLength, rate: settlingRate(rate), refund: false };
  return { ...common, hits: used, enforcement: 'observe', settles: 'oldest' };
}
