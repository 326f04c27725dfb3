import type { TakeItem } from './bucket-store.js';
import {
  askedCarry,
  askedWhole,
  chargedHits,
  costCarry,
  costWhole,
  countsDenied,
  forgivenTokens,
  isCharge,
  type Rate,
  type TokenBucketRate,
  type WindowRate,
  windowEnd,
  windowStart,
} from './rate.js';
import type { RunningBucket } from './running-bucket.js';

/**
 * What `decide` found for each item, as parallel arrays that the caller reuses: whether it was limited, the bucket's
 * `whole` and `part` to report (see RunningBucket), and the hits of a charge that its bucket could not take on.
 */
export interface Steps {
  readonly limited: boolean[];
  readonly forgiven: number[];
  readonly whole: number[];
  readonly part: number[];
}

/** Hits of a window saturate here. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

/**
 * Decides one request by the rules of BucketStore: changes `buckets`, freshly loaded, and fills `steps`. `buckets` may
 * be longer than `items`; items of one key share one object. What is neither `dirty` nor `repaired` afterwards need not
 * be stored. src/storage/redis/take.lua with take-groups.lua is the same text in Lua;
 * test/support/limiter/take-vectors.ts and test/property/ hold the two together. Only what a smaller bucket cuts off is
 * kept there for other servers (take-levels.lua).
 *
 * `tokenMicros` is the time of token buckets, `windowMicros` that of windows: Redis has one clock for both.
 *
 * Returns whether the request is denied.
 */
export function decide(
  items: readonly TakeItem[],
  buckets: readonly RunningBucket[],
  tokenMicros: number,
  windowMicros: number,
  countDeniedHits: boolean,
  steps: Steps,
): boolean {
  const count = items.length;
  let enforceLimited = false;
  let quotaItems = 0;
  let quotaLimited = 0;
  for (let i = 0; i < count; i++) {
    const item = items[i] as TakeItem;
    const bucket = buckets[i] as RunningBucket;
    steps.forgiven[i] = 0;
    let limited = false;
    if (isCharge(item.rate, item.hits, item.refund)) {
      steps.forgiven[i] =
        item.rate.kind === 'window'
          ? chargeHits(bucket, item.rate, item.hits, windowMicros)
          : chargeTokens(bucket, item.rate, item.hits, tokenMicros);
    } else {
      limited =
        item.rate.kind === 'window'
          ? countHits(bucket, item.rate, item.hits, item.refund, windowMicros, countDeniedHits)
          : takeTokens(bucket, item.rate, item.hits, item.refund, tokenMicros);
    }
    report(steps, i, limited, bucket);
    if (item.enforcement === 'quota') {
      quotaItems++;
      if (limited) quotaLimited++;
    } else if (limited && item.enforcement === 'enforce') {
      enforceLimited = true;
    }
  }
  const denied = enforceLimited || (quotaItems > 0 && quotaLimited === quotaItems);
  if (denied) deny(items, buckets, tokenMicros, windowMicros, countDeniedHits, steps);
  for (let i = 0; i < count; i++) {
    const bucket = buckets[i] as RunningBucket;
    // The rounding of a mere look is undone.
    if (!bucket.dirty) bucket.restore();
    else foldDebt(bucket, (items[i] as TakeItem).rate, windowMicros);
  }
  return denied;
}

/** Takes everything back, counts the hits of a denied request, and reports what is then there. */
function deny(
  items: readonly TakeItem[],
  buckets: readonly RunningBucket[],
  tokenMicros: number,
  windowMicros: number,
  countDeniedHits: boolean,
  steps: Steps,
): void {
  // A candidate's bucket has a name of its own, so no other item names it.
  for (let i = 0; i < items.length; i++) {
    if ((items[i] as TakeItem).enforcement !== 'candidate') (buckets[i] as RunningBucket).restore();
  }
  for (let i = 0; i < items.length; i++) {
    const item = items[i] as TakeItem;
    if (item.enforcement === 'candidate') continue;
    const bucket = buckets[i] as RunningBucket;
    steps.forgiven[i] = 0;
    const limited = steps.limited[i] as boolean;
    if (item.rate.kind === 'window') {
      // Hits 0 is a look; refunds of a denied request change nothing.
      const counts = !item.refund && countsDenied(item.rate, countDeniedHits);
      const hits = counts ? item.hits : 0;
      countHits(bucket, item.rate, hits, false, windowMicros, countDeniedHits);
      report(steps, i, limited, bucket);
    } else if (!limited) {
      readTokens(bucket, item.rate, tokenMicros);
      report(steps, i, false, bucket);
    }
  }
}

function report(steps: Steps, i: number, limited: boolean, bucket: RunningBucket): void {
  steps.limited[i] = limited;
  steps.whole[i] = bucket.whole;
  steps.part[i] = bucket.part;
}

/**
 * Brings the state into the terms of `rate`: between full (now) and empty, or the deepest debt (now + time to fill from
 * there).
 */
function readTokens(bucket: RunningBucket, rate: TokenBucketRate, nowMicros: number): void {
  if (bucket.unit <= 0) {
    bucket.unit = rate.q;
    bucket.whole = nowMicros;
    bucket.part = 0;
    return;
  }
  if (bucket.unit !== rate.q) {
    // Another limit was in force: its carry counts in other parts, so it is rounded against the caller.
    if (bucket.part > 0) bucket.whole += 1;
    bucket.part = 0;
    bucket.unit = rate.q;
  }
  if (isBelow(bucket, nowMicros + rate.debtWhole, rate.debtCarry)) {
    bucket.whole = nowMicros + rate.debtWhole;
    bucket.part = rate.debtCarry;
    if (!bucket.dirty) bucket.repair();
  } else if (bucket.whole < nowMicros) {
    bucket.whole = nowMicros;
    bucket.part = 0;
  }
}

/** Whether more is missing than the state `whole`, `part` says. */
function isBelow(bucket: RunningBucket, whole: number, part: number): boolean {
  return bucket.whole > whole || (bucket.whole === whole && bucket.part > part);
}

/** One item on a token bucket. Returns whether it was limited; then the bucket is as it was. */
function takeTokens(
  bucket: RunningBucket,
  rate: TokenBucketRate,
  hits: number,
  refund: boolean,
  nowMicros: number,
): boolean {
  readTokens(bucket, rate, nowMicros);
  const q = rate.q;
  if (refund) {
    if (hits === 0 || (bucket.whole === nowMicros && bucket.part === 0)) return false;
    const returned = chargedHits(rate, hits);
    let whole = bucket.whole - costWhole(rate, returned);
    let part = bucket.part - costCarry(rate, returned);
    if (part < 0) {
      part += q;
      whole -= 1;
    }
    const full = whole < nowMicros;
    bucket.whole = full ? nowMicros : whole;
    bucket.part = full ? 0 : part;
    bucket.dirty = true;
    return false;
  }
  // A peek asks whether one more token is there.
  const asked = hits === 0 ? 1 : hits;
  let whole = bucket.whole + askedWhole(rate, asked);
  let part = bucket.part + askedCarry(rate, asked);
  if (part >= q) {
    part -= q;
    whole += 1;
  }
  const emptyWhole = nowMicros + rate.fillWhole;
  if (whole > emptyWhole || (whole === emptyWhole && part > rate.fillCarry)) return true;
  if (hits === 0) return false;
  bucket.whole = whole;
  bucket.part = part;
  bucket.dirty = true;
  return false;
}

/** A charge on a token bucket, down to the deepest debt. Returns how many hits of it went beyond, and are forgiven. */
function chargeTokens(bucket: RunningBucket, rate: TokenBucketRate, hits: number, nowMicros: number): number {
  readTokens(bucket, rate, nowMicros);
  const charged = chargedHits(rate, hits);
  bucket.whole += costWhole(rate, charged);
  bucket.part += costCarry(rate, charged);
  if (bucket.part >= rate.q) {
    bucket.part -= rate.q;
    bucket.whole += 1;
  }
  bucket.dirty = true;
  const lowestWhole = nowMicros + rate.debtWhole;
  let over = 0;
  if (isBelow(bucket, lowestWhole, rate.debtCarry)) {
    over = bucket.whole - lowestWhole;
    bucket.whole = lowestWhole;
    bucket.part = rate.debtCarry;
  }
  return forgivenTokens(rate, hits, over);
}

/** Brings the state into the terms of the window that holds now; a debt of the one before counts in it. */
function readWindow(bucket: RunningBucket, rate: WindowRate, nowMicros: number): void {
  const start = windowStart(rate, nowMicros);
  const end = windowEnd(rate, start);
  if (bucket.unit !== start - end || bucket.whole !== start) {
    // A debt is kept as hits of the next window, see foldDebt.
    const isNext = bucket.unit < 0 && bucket.whole === end;
    bucket.owes = isNext && rate.maxDebt === 0 && bucket.part < 0;
    if (bucket.owes) bucket.part = MAX_COUNT;
    else if (isNext && rate.maxDebt > 0) {
      bucket.part = Math.min(rate.requestsPerUnit + Math.abs(bucket.part), lowestCount(rate));
    } else bucket.part = 0;
    bucket.unit = start - end;
    bucket.whole = start;
    return;
  }
  if (bucket.part < 0) bucket.part = -bucket.part;
  // Another limit was in force, or denied hits were counted: none of it makes a deeper debt.
  if (rate.maxDebt > 0 && bucket.part > lowestCount(rate)) bucket.part = lowestCount(rate);
}

/** The most hits that a window with debt counts. */
function lowestCount({ requestsPerUnit, maxDebt }: WindowRate): number {
  return requestsPerUnit + maxDebt;
}

/**
 * A window in debt is stored as the next one with minus the hits that are too many: so it lasts until that one ends,
 * which begins with them. Read before, it says that this one is used up, to a rule without debt, too: that one leaves
 * it as it is, or replicas that disagree about `allow_debt` for a while would forget the hits of a window by turns.
 */
function foldDebt(bucket: RunningBucket, rate: Rate, nowMicros: number): void {
  if (rate.kind !== 'window' || rate.maxDebt === 0 || bucket.part <= rate.requestsPerUnit) return;
  const start = windowStart(rate, nowMicros);
  const end = windowEnd(rate, start);
  if (bucket.whole !== start || bucket.unit !== start - end) return;
  bucket.part = rate.requestsPerUnit - bucket.part;
  bucket.unit = end - windowEnd(rate, end);
  bucket.whole = end;
}

/** A charge on a window. Returns how many hits of it went beyond the deepest debt, and are forgiven. */
function chargeHits(bucket: RunningBucket, rate: WindowRate, hits: number, nowMicros: number): number {
  readWindow(bucket, rate, nowMicros);
  const room = Math.max(0, lowestCount(rate) - bucket.part);
  const counted = Math.min(hits, room);
  bucket.part += counted;
  bucket.dirty = true;
  return hits - counted;
}

/** One item on a window. Returns whether it was limited. */
function countHits(
  bucket: RunningBucket,
  rate: WindowRate,
  hits: number,
  refund: boolean,
  nowMicros: number,
  countDeniedHits: boolean,
): boolean {
  readWindow(bucket, rate, nowMicros);
  const before = bucket.part;
  const owes = bucket.owes && rate.maxDebt === 0;
  if (refund) {
    if (owes) return false;
    bucket.part = Math.max(0, before - hits);
    if (bucket.part !== before) bucket.dirty = true;
    return false;
  }
  // With debt a peek asks for one hit more, as at a token bucket.
  const asked = rate.maxDebt > 0 && hits === 0 ? 1 : hits;
  // The sum of two safe integers may round, but never to below a limit of 32 bits.
  const limited = before + asked > rate.requestsPerUnit;
  if (hits > 0 && (!limited || countsDenied(rate, countDeniedHits))) {
    bucket.part = Math.min(before + hits, MAX_COUNT);
    bucket.dirty = !owes || bucket.dirty;
  }
  return limited;
}
