import type { TakeOutcome } from '../limiter/bucket-store.js';
import { isCharge } from '../limiter/rate.js';
import { costWhole } from '../limiter/token-bucket.js';
import { runToCompletion } from '../runtime/turns.js';
import type { PlannedTake } from './plan.js';

/** Keys of so few takes are compared with each other: that takes a microsecond or two, and no memory. */
const MAX_COMPARED_TAKES = 16;

/** Takes that are looked at in one step. */
const TAKES_PER_SLICE = 500;

/** What the takes of one request ask of one bucket together. */
class SharedBucket {
  /** Hits of all of them, refunds apart. */
  requestedHits = 0;
  /** Hits that were taken for those that the store let pass, less what was given back. */
  takenHits = 0;
  /** Whether the takes do not all fit even into a full bucket, or into an empty window. */
  exceedsLimit = false;
  /** Hits that a full bucket, or an empty window, would have given by now. */
  private usedHits = 0;

  /** Returns whether the take, after those before, does not fit even into a full bucket. */
  add({ rate, hits, refund, outcome }: PlannedTake): boolean {
    if (refund) {
      this.usedHits = Math.max(0, this.usedHits - hits);
      this.takenHits -= hits;
      return false;
    }
    this.requestedHits = Math.min(this.requestedHits + hits, Number.MAX_SAFE_INTEGER);
    if (outcome?.limited !== true) this.takenHits += hits;
    if (isCharge(rate, hits, refund)) {
      this.usedHits = Math.min(this.usedHits + hits, rate.reportedLimit + rate.maxDebt);
      return false;
    }
    // A peek asks whether one more hit is there, except at a window without debt.
    const isPeek = hits === 0 && (rate.kind === 'token_bucket' || rate.maxDebt > 0);
    if (this.usedHits + (isPeek ? 1 : hits) > rate.reportedLimit) {
      this.exceedsLimit = true;
      return true;
    }
    this.usedHits += hits;
    return false;
  }
}

/**
 * Finds takes of one request that can never pass because several of them fall on one bucket, and ask together for more
 * than it ever holds. Their outcomes get `together`, and the wait until the bucket is full, as a single take has that
 * asks for too much. The takes of a request that denies nothing cost one look at each.
 *
 * Quotas deny only together, so one that fits alone lets its request pass: only those that do not fit are marked.
 */
export function markNeverPassing(takes: readonly PlannedTake[]): void {
  if (isAnyLimited(takes) && isAnyShared(takes)) runToCompletion(markSlices(takes));
}

/** {@link markNeverPassing} of many takes, half a millisecond of it at a time. */
export function* markNeverPassingInSlices(takes: readonly PlannedTake[]): Generator<void, void> {
  if (!isAnyLimited(takes) || !isAnyShared(takes)) return;
  yield;
  yield* markSlices(takes);
}

function* markSlices(takes: readonly PlannedTake[]): Generator<void, void> {
  const buckets = new Map<string, SharedBucket>();
  const oversized = new Set<PlannedTake>();
  /** What was taken from its bucket before each limited take. */
  const takenBefore = new Map<PlannedTake, number>();
  let visited = 0;
  for (const take of takes) {
    const bucket = buckets.get(take.key) ?? new SharedBucket();
    buckets.set(take.key, bucket);
    if (take.outcome?.limited === true) takenBefore.set(take, bucket.takenHits);
    if (bucket.add(take)) oversized.add(take);
    if (++visited % TAKES_PER_SLICE === 0) yield;
  }
  for (const [take, taken] of takenBefore) {
    if (++visited % TAKES_PER_SLICE === 0) yield;
    const bucket = buckets.get(take.key) as SharedBucket;
    // A take that asks for too much alone is known without this.
    const neverPasses = take.quota ? oversized.has(take) : bucket.exceedsLimit;
    if (!neverPasses || bucket.requestedHits === take.hits) continue;
    const outcome = take.outcome as TakeOutcome;
    take.outcome = {
      combinedHits: bucket.requestedHits,
      ...outcome,
      waitMicros: untilFull(take, outcome, Math.max(0, taken)),
    };
  }
}

/** Microseconds until the bucket is full, of which a limited take found `taken` less than there is; a window ends. */
function untilFull({ rate, hits }: PlannedTake, outcome: TakeOutcome, taken: number): number {
  if (rate.kind === 'window') return outcome.waitMicros;
  const missing = rate.minTimeToFill(hits, outcome);
  return Math.max(0, missing.whole - costWhole(rate, taken));
}

function isAnyLimited(takes: readonly PlannedTake[]): boolean {
  for (let i = 0; i < takes.length; i++) if ((takes[i] as PlannedTake).outcome?.limited === true) return true;
  return false;
}

/** Whether two of the takes name one bucket. */
function isAnyShared(takes: readonly PlannedTake[]): boolean {
  if (takes.length > MAX_COMPARED_TAKES) return new Set(takes.map(({ key }) => key)).size < takes.length;
  for (let i = 1; i < takes.length; i++) {
    const { key } = takes[i] as PlannedTake;
    for (let before = 0; before < i; before++) if ((takes[before] as PlannedTake).key === key) return true;
  }
  return false;
}
