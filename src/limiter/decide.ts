import type { Take } from './bucket-store.js';
import { placeableHold, type SettledHold } from './holds/hold.js';
import { correctionOf, holdCostMicros, settlementOperation } from './holds/settlement.js';
import { isCharge } from './rate.js';
import type { BucketOperation, TakeOutcome } from './rate-algorithm.js';
import { RunningBucket, type TakeSnapshot } from './running-bucket.js';

/** A refund of nothing. */
const NO_OPERATION: BucketOperation = { hits: 0, refund: true };

/** See {@link copyOf}; reused. */
const copy = new RunningBucket();

/**
 * Decides one request by the rules of BucketStore. Changes `buckets`, which are freshly loaded, and records in
 * `snapshots` the state of each item's bucket for its outcome. `buckets` and `snapshots` may be longer than `items`;
 * items with the same key share one bucket. A bucket that is not `dirty` afterwards need not be stored.
 *
 * src/storage/redis/script/take.lua and the scripts next to it implement the same rules in Lua;
 * test/support/limiter/take-vectors.ts and test/property/ check that both agree.
 *
 * `tokenMicros` is the time for token buckets, `windowMicros` the time for windows. Redis uses one clock for both.
 *
 * Returns whether the request is denied.
 */
export function decide(
  takes: readonly Take[],
  buckets: readonly RunningBucket[],
  snapshots: readonly TakeSnapshot[],
  tokenMicros: number,
  windowMicros: number,
  countDeniedHits: boolean,
): boolean {
  const count = takes.length;
  for (let i = 0; i < count; i++) {
    const take = takes[i] as Take;
    const { rate } = take;
    const bucket = buckets[i] as RunningBucket;
    const snapshot = snapshots[i] as TakeSnapshot;
    const nowMicros = rate.nowOf(tokenMicros, windowMicros);
    let overLimit = false;
    snapshot.uncollectedHits = 0;
    snapshot.hold = undefined;
    const hold = take.holds === undefined ? undefined : placeableHold(take);
    const fits = hold === undefined || snapshot.holdFits;
    const skipped = isSkipped(takes, snapshots, i);
    let operation: BucketOperation = fits && !skipped ? take : NO_OPERATION;
    let target = skipped ? copyOf(bucket) : bucket;
    if (take.settles !== undefined) {
      operation = settle(take, take.settles, snapshot);
      if (snapshot.hold === 'unknown') target = copyOf(bucket);
    }
    if (isCharge(rate, operation.hits, operation.refund))
      snapshot.uncollectedHits = rate.charge(target, operation.hits, nowMicros, operation.undoAtMicros);
    else overLimit = rate.take(target, operation, nowMicros, countDeniedHits);
    if (!fits) overLimit = true;
    if (hold !== undefined && fits && (!overLimit || rate.kind === 'concurrency')) snapshot.hold = 'placed';
    snapshot.record(overLimit, target);
  }
  const denied = deniesRequest(takes, snapshots);
  if (denied) deny(takes, buckets, snapshots, tokenMicros, windowMicros, countDeniedHits);
  for (let i = 0; i < count; i++) {
    const bucket = buckets[i] as RunningBucket;
    // A peek may only have rounded the state, so its changes are undone.
    if (!bucket.dirty) bucket.restore();
    else (takes[i] as Take).rate.toStoredForm(bucket, windowMicros);
  }
  return denied;
}

/**
 * Returns whether a request is denied by the rules of BucketStore: an `enforce` item is limited, or all `quota` items
 * are. `found` has one element for each item and may be longer.
 */
export function deniesRequest(
  items: readonly Pick<Take, 'enforcement'>[],
  found: readonly { readonly overLimit: boolean }[],
): boolean {
  let quotas = 0;
  let quotasLimited = 0;
  for (let i = 0; i < items.length; i++) {
    const { enforcement } = items[i] as Pick<Take, 'enforcement'>;
    const { overLimit } = found[i] as { readonly overLimit: boolean };
    if (overLimit && enforcement === 'enforce') return true;
    if (enforcement !== 'quota') continue;
    quotas++;
    if (overLimit) quotasLimited++;
  }
  return quotas > 0 && quotasLimited === quotas;
}

/**
 * Returns whether the item at `index` has no effect, because an item before it in its chain (`spill`) was skipped, or
 * was not limited. Only the elements of `found` before `index` need to be known.
 */
export function isSkipped(
  items: readonly Pick<Take, 'enforcement'>[],
  found: readonly { readonly overLimit: boolean }[],
  index: number,
): boolean {
  if (index === 0 || items[index - 1]?.enforcement !== 'spill') return false;
  return found[index - 1]?.overLimit !== true;
}

/**
 * Records whether the hold of a settlement exists. Returns the operation, which has no effect if the hold does not
 * exist.
 */
function settle(take: Take, settles: SettledHold, snapshot: TakeSnapshot): BucketOperation {
  const { takenMicros, held } = snapshot;
  snapshot.hold = takenMicros < 0 ? 'unknown' : 'settled';
  if (snapshot.hold === 'unknown') return NO_OPERATION;
  if (settles !== 'oldest') return settlementOperation(take, settles, takenMicros);
  const correction = { rate: take.rate, ...correctionOf(take.hits, held.amount) };
  return settlementOperation(correction, held, takenMicros);
}

/**
 * Returns a copy of a bucket for an item that must not change the bucket, because it is skipped, or settles a hold that
 * does not exist.
 */
function copyOf({ unit, wholeMicros: whole, remainder: part }: RunningBucket): RunningBucket {
  copy.load(unit, whole, part);
  return copy;
}

/** Undoes all takes, counts the hits of a denied request, and records the resulting state. */
function deny(
  takes: readonly Take[],
  buckets: readonly RunningBucket[],
  snapshots: readonly TakeSnapshot[],
  tokenMicros: number,
  windowMicros: number,
  countDeniedHits: boolean,
): void {
  for (let i = 0; i < takes.length; i++) (buckets[i] as RunningBucket).restore();
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as Take;
    const snapshot = snapshots[i] as TakeSnapshot;
    if (snapshot.hold === 'placed') snapshot.hold = undefined;
    const nowMicros = take.rate.nowOf(tokenMicros, windowMicros);
    snapshot.uncollectedHits = 0;
    take.rate.deny(buckets[i] as RunningBucket, take, snapshot, nowMicros, countDeniedHits);
  }
}

/** Returns the outcome of an item after {@link decide}. `nowMicros` is the time on the clock of its rate. */
export function outcomeOf(take: Take, snapshot: TakeSnapshot, nowMicros: number): TakeOutcome {
  const { rate, hits, settles } = take;
  const outcome = rate.outcome(hits, snapshot, nowMicros);
  // If there is no memory for a hold, the request cannot use the remaining hits.
  if (take.holds !== undefined && !snapshot.holdFits && placeableHold(take) !== undefined) {
    return { ...outcome, remaining: 0 };
  }
  const { hold, previousFullAtMicros } = snapshot;
  if (hold === undefined) return outcome;
  const { overLimit, uncollectedHits, cached } = outcome;
  // A store does not have to count the occupied slots to free some of them.
  if (settles !== undefined && rate.kind === 'concurrency')
    return {
      overLimit,
      remaining: 0,
      waitMicros: 0,
      used: 0,
      uncollectedHits,
      cached,
      hold,
      fullAtMicros: 0,
    };
  const isReservation = hold === 'placed' && rate.kind === 'token_bucket';
  const fullAtMicros = isReservation ? Math.max(nowMicros, previousFullAtMicros) : 0;
  const refillMicros = isReservation ? holdCostMicros(rate, hits) : 0;
  if (hold === 'settled' && settles === 'oldest')
    return { ...outcome, hold, fullAtMicros, heldHits: snapshot.held.amount };
  const { remaining, waitMicros, used, undoAtMicros } = outcome;
  return {
    overLimit,
    remaining,
    waitMicros,
    used,
    uncollectedHits,
    cached,
    undoAtMicros,
    hold,
    fullAtMicros,
    refillMicros,
  };
}
