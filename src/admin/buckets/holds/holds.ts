import { StorageError, type Take } from '../../../limiter/bucket-store.js';
import { type HoldValues, heldCount, MAX_SLOTS_PER_ITEM } from '../../../limiter/holds/hold.js';
import { MAX_LISTED_HOLDS, type StoredHold, storedCount } from '../../../limiter/holds/hold-inspector.js';
import type { Rule } from '../../../policy/rule.js';
import { plural } from '../../../runtime/texts.js';
import { turn } from '../../../runtime/turns.js';
import { heldRule } from '../../../service/holds/held-rules.js';
import { settlementTake } from '../../../service/holds/hold-settlement.js';
import type { MatchedTake } from '../../../service/request-context.js';
import type { FoundLimit } from '../found-limits.js';
import type { ShownBucket, ShownHold, ShownHolds } from '../messages.js';
import { changeFailed, type QuestionContext } from '../read-question.js';
import { encodeHoldId } from './hold-id.js';

/** Maximum number of holds of a bucket that an answer lists. Further ones are counted. */
const MAX_HOLDS_SHOWN = 100;
/** Maximum number of buckets whose holds an answer lists. */
const MAX_BUCKETS_WITH_HOLDS = 10;

/** A known bucket of a rule with holds. */
interface HeldLimit {
  readonly limit: FoundLimit;
  readonly take: MatchedTake;
  readonly rule: Rule;
  readonly lifetimeMillis: number;
}

/** Returns the limits with holds whose buckets are known, each bucket once. */
export function heldLimits(limits: readonly FoundLimit[]): readonly HeldLimit[] {
  const byKey = new Map<string, HeldLimit>();
  for (const limit of limits) {
    const { take } = limit;
    const rule = take?.rule;
    if (take === undefined || rule?.hold === undefined || byKey.has(take.key)) continue;
    byKey.set(take.key, { limit, take, rule, lifetimeMillis: rule.hold.expiresAfterMillis });
  }
  return [...byKey.values()];
}

/**
 * Returns the values that settle a hold. Redis does not store the lifetime of a hold in a concurrency limit, and does
 * not compare it. The lifetime in the rule then applies.
 */
function settlementOfStored(
  { id, amount, fullAtMicros, refillMicros, lifetimeMillis, freesUnknown }: StoredHold,
  { lifetimeMillis: ofRule }: Pick<HeldLimit, 'lifetimeMillis'>,
): HoldValues {
  return { id, amount, fullAtMicros, refillMicros, lifetimeMillis: lifetimeMillis ?? ofRule, freesUnknown };
}

function shownHold(hold: StoredHold, held: HeldLimit): ShownHold {
  const values = settlementOfStored(hold, held);
  return {
    id: encodeHoldId(values),
    amount: hold.amount,
    age: Math.max(0, values.lifetimeMillis / 1000 - hold.remainingMicros / 1_000_000),
    ends_in: hold.remainingMicros / 1_000_000,
  };
}

/** Lists the holds of the known buckets, by limit. A bucket has no list if its holds could not be read. */
export async function shownHolds(
  limits: readonly FoundLimit[],
  { store }: Pick<QuestionContext, 'store'>,
): Promise<ReadonlyMap<FoundLimit, ShownHolds>> {
  const shown = new Map<FoundLimit, ShownHolds>();
  // One after the other, because Redis limits the number of scripts that wait.
  for (const held of heldLimits(limits).slice(0, MAX_BUCKETS_WITH_HOLDS)) {
    const listed = await store.holds.listHolds(held.take, MAX_HOLDS_SHOWN);
    if (listed instanceof StorageError) continue;
    shown.set(held.limit, {
      list: listed.holds.map((hold) => shownHold(hold, held)),
      more: listed.more,
    });
  }
  return shown;
}

/** Maximum number of holds, and maximum {@link heldCount}, of a request to the store. It takes about a millisecond. */
const HOLDS_PER_TAKE = 64;
const WORK_PER_TAKE = MAX_SLOTS_PER_ITEM;
/** Time after which a release begins no further requests, in microseconds. The caller waits for the answer. */
const MAX_RELEASE_MICROS = 4_000_000;

/** Result of a release in one bucket. */
export interface Released {
  readonly count: number;
  /** Whether holds may remain, because there were too many. In a dry run, whether `count` is only a maximum. */
  readonly isPartial: boolean;
  readonly failure: StorageError | undefined;
}

/**
 * Ends one hold, or without `hold` all holds of buckets, with a use of 0. In a dry run, only counts them. Returns a
 * result for each bucket.
 */
export async function releaseFrom(
  held: readonly HeldLimit[],
  { hold, isDry }: { readonly hold: HoldValues | undefined; readonly isDry: boolean },
  context: QuestionContext,
  domain: string,
): Promise<readonly Released[]> {
  const untilMicros = context.clock.monotonicMicros() + MAX_RELEASE_MICROS;
  const results: Released[] = [];
  for (const one of held) {
    if (isDry) results.push(await countHolds(one, hold, context));
    else if (hold === undefined) results.push(await releaseAll(one, context, domain, untilMicros));
    else results.push(await releaseOne(one, hold, context, domain));
  }
  return results;
}

export function releasedCount(results: readonly Released[]): number {
  return results.reduce((sum, { count }) => sum + count, 0);
}

export function shownRelease({ count, failure }: Released): Pick<ShownBucket, 'released' | 'note'> {
  const note = failure && `The release failed: ${changeFailed(failure)}.`;
  return { released: count, ...(note !== undefined && { note }) };
}

export function releaseNotes(results: readonly Released[], isDry: boolean): readonly string[] {
  const count = releasedCount(results);
  const holds = plural(count, 'hold');
  const isPartial = results.some((released) => released.isPartial);
  if (isDry) return [`${isPartial ? `At most ${holds}` : holds} would be released.`];
  const notes = [`${holds} released.`];
  if (count > 0) notes.push('If requests of these holds still run, weir does not count them any more.');
  if (isPartial) {
    notes.push('Some holds remain, because there are too many for one command. Run the command again.');
  }
  return notes;
}

/**
 * Counts the holds that a release would end. The store counts slots instead of holds if there are too many for a list.
 */
async function countHolds(
  { take }: HeldLimit,
  hold: HoldValues | undefined,
  { store }: QuestionContext,
): Promise<Released> {
  if (hold !== undefined) {
    const found = await store.holds.hasHold(take, hold);
    const failure = found instanceof StorageError ? found : undefined;
    return { count: found === true ? 1 : 0, isPartial: false, failure };
  }
  const listed = await store.holds.listHolds(take, MAX_LISTED_HOLDS);
  if (listed instanceof StorageError) return { count: 0, isPartial: false, failure: listed };
  const isPartial = listed.more > 0 && take.rate.kind === 'concurrency';
  return { count: listed.holds.length + listed.more, isPartial, failure: undefined };
}

/** Ends the holds that exist now, those that expire first at the beginning, until `untilMicros`. */
async function releaseAll(
  held: HeldLimit,
  context: QuestionContext,
  domain: string,
  untilMicros: number,
): Promise<Released> {
  const { store, clock } = context;
  let count = 0;
  /** Slots or reservations that existed at the beginning. Later ones expire later, so they remain. */
  let left = Number.POSITIVE_INFINITY;
  while (left > 0) {
    const listed = await store.holds.listHolds(held.take, MAX_LISTED_HOLDS);
    if (listed instanceof StorageError) return { count, isPartial: false, failure: listed };
    const slots = storedCount(listed.holds, held.take.rate);
    left = Math.min(left, slots + listed.more);
    const settlements = listed.holds.map((hold) => settlementOfStored(hold, held));
    const { count: ended, failure } = await settle(held, settlements, context, domain);
    count += ended;
    if (failure !== undefined) return { count, isPartial: false, failure };
    left -= slots;
    // Other processes may have ended all of them in the meantime.
    const isOver = clock.monotonicMicros() >= untilMicros;
    if (left > 0 && (ended === 0 || isOver)) return { count, isPartial: true, failure };
  }
  return { count, isPartial: false, failure: undefined };
}

function releaseOne(
  held: HeldLimit,
  hold: HoldValues,
  context: QuestionContext,
  domain: string,
): Promise<Released> {
  // The ID of a hold does not name its set.
  const sets = held.take.rate.kind === 'concurrency' ? [false] : [false, true];
  const settlements = sets.map((freesUnknown) => ({ ...hold, freesUnknown }));
  return settle(held, settlements, context, domain);
}

/** Settles holds with a use of 0, until the store fails. */
async function settle(
  { take, rule }: HeldLimit,
  settlements: readonly HoldValues[],
  { store, clock, counts }: QuestionContext,
  domain: string,
): Promise<Released> {
  const { rate } = heldRule(rule);
  let count = 0;
  const all = settlements.map((hold) => ({ ...settlementTake(take, rate, hold, 0), settles: hold }));
  for (const items of partsOf(all)) {
    const deadlineMicros = clock.monotonicMicros() + store.timeoutMicros;
    const result = await store.buckets.take(items, deadlineMicros);
    if (result instanceof StorageError) return { count, isPartial: false, failure: result };
    for (const [i, { hold }] of result.entries()) {
      if (hold !== 'settled') continue;
      count++;
      counts.released(domain, rule.path, items[i]?.settles.amount ?? 0);
    }
    await turn();
  }
  return { count, isPartial: false, failure: undefined };
}

/** Divides ends of holds into parts that a store settles in a short time. */
function partsOf<T extends Take>(items: readonly T[]): readonly (readonly T[])[] {
  const parts: T[][] = [];
  let part: T[] = [];
  let work = 0;
  for (const item of items) {
    const more = heldCount(item);
    if (part.length === 0 || part.length === HOLDS_PER_TAKE || work + more > WORK_PER_TAKE) {
      part = [];
      work = 0;
      parts.push(part);
    }
    part.push(item);
    work += more;
  }
  return parts;
}
