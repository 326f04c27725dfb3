import type { TakeItem } from './bucket-store.js';
import { askedCarry, askedWhole, type TokenBucketRate, type WindowRate } from './rate.js';
import type { RunningBucket } from './running-bucket.js';

/**
 * What `decide` found for each item, as parallel arrays that the caller reuses: whether it was limited, and the bucket's
 * `whole` and `part` to report (see RunningBucket).
 */
export interface Steps {
  readonly limited: boolean[];
  readonly whole: number[];
  readonly part: number[];
}

/** Hits of a window saturate here. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

/**
 * Decides one request by the rules of BucketStore: changes `buckets`, freshly loaded, and fills `steps`. `buckets` may be
 * longer than `items`; items of one key share one object. What is neither `dirty` nor
 * `repaired` afterwards need not be stored. src/storage/redis/take.lua is the same text in Lua; test/support/take-vectors.ts
 * and test/property/ hold the two together.
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
    const limited =
      item.rate.kind === 'window'
        ? countHits(bucket, item.rate, item.hits, item.refund, windowMicros, countDeniedHits)
        : takeTokens(bucket, item.rate, item.hits, item.refund, tokenMicros);
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
  for (let i = 0; i < items.length; i++) (buckets[i] as RunningBucket).restore();
  for (let i = 0; i < items.length; i++) {
    const item = items[i] as TakeItem;
    const bucket = buckets[i] as RunningBucket;
    const limited = steps.limited[i] as boolean;
    if (item.rate.kind === 'window') {
      // Hits 0 is a look; refunds of a denied request change nothing.
      const hits = item.refund || !countDeniedHits ? 0 : item.hits;
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

/** Brings the state into the terms of `rate`: between full (now) and empty (now + time to fill). */
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
  const emptyWhole = nowMicros + rate.fillWhole;
  if (bucket.whole > emptyWhole || (bucket.whole === emptyWhole && bucket.part > rate.fillCarry)) {
    bucket.whole = emptyWhole;
    bucket.part = rate.fillCarry;
    if (!bucket.dirty) bucket.repair();
  } else if (bucket.whole < nowMicros) {
    bucket.whole = nowMicros;
    bucket.part = 0;
  }
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
    let whole = bucket.whole - askedWhole(rate, hits);
    let part = bucket.part - askedCarry(rate, hits);
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

/** One item on a window. Returns whether it was limited. */
function countHits(
  bucket: RunningBucket,
  rate: WindowRate,
  hits: number,
  refund: boolean,
  nowMicros: number,
  countDeniedHits: boolean,
): boolean {
  const start = nowMicros - (nowMicros % rate.lengthMicros);
  if (bucket.unit !== -rate.lengthMicros || bucket.whole !== start) {
    bucket.unit = -rate.lengthMicros;
    bucket.whole = start;
    bucket.part = 0;
  }
  const before = bucket.part;
  if (refund) {
    bucket.part = Math.max(0, before - hits);
    if (bucket.part !== before) bucket.dirty = true;
    return false;
  }
  // The sum of two safe integers may round, but never to below a limit of 32 bits.
  const after = before + hits;
  const limited = after > rate.requestsPerUnit;
  if (hits > 0 && (!limited || countDeniedHits)) {
    bucket.part = Math.min(after, MAX_COUNT);
    bucket.dirty = true;
  }
  return limited;
}
