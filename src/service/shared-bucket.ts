import type { TakeOutcome } from '../limiter/bucket-store.js';
import { isCharge } from '../limiter/rate.js';
import { costWhole } from '../limiter/token-bucket.js';
import { runToCompletion } from '../runtime/turns.js';
import type { PlannedTake } from './plan.js';

/** Keys of so few takes are compared with each other: that takes a microsecond or two, and no memory. */
const FEW_TAKES = 16;

/** Takes that are looked at in one step. */
const STEP = 500;

/** What the takes of one request ask of one bucket together. */
class SharedBucket {
  /** Hits of all of them, refunds apart. */
  asked = 0;
  /** Hits that were taken for those that the store let pass, less what was given back. */
  taken = 0;
  /** Whether the takes do not all fit even into a full bucket, or into an empty window. */
  isBeyond = false;
  /** Hits that a full bucket, or an empty window, would have given by now. */
  private used = 0;

  /** Returns whether the take, after those before, does not fit even into a full bucket. */
  add({ rate, hits, refund, outcome }: PlannedTake): boolean {
    if (refund) {
      this.used = Math.max(0, this.used - hits);
      this.taken -= hits;
      return false;
    }
    this.asked = Math.min(this.asked + hits, Number.MAX_SAFE_INTEGER);
    if (outcome?.limited !== true) this.taken += hits;
    if (isCharge(rate, hits, refund)) {
      this.used = Math.min(this.used + hits, rate.reportedLimit + rate.maxDebt);
      return false;
    }
    // A peek asks whether one more hit is there, except at a window without debt.
    const isPeek = hits === 0 && (rate.kind === 'token_bucket' || rate.maxDebt > 0);
    if (this.used + (isPeek ? 1 : hits) > rate.reportedLimit) {
      this.isBeyond = true;
      return true;
    }
    this.used += hits;
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
export function noteTogether(takes: readonly PlannedTake[]): void {
  if (isAnyLimited(takes) && isAnyShared(takes)) runToCompletion(note(takes));
}

/** {@link noteTogether} of many takes, half a millisecond of it at a time. */
export function* noteTogetherInSteps(takes: readonly PlannedTake[]): Generator<void, void> {
  if (!isAnyLimited(takes) || !isAnyShared(takes)) return;
  yield;
  yield* note(takes);
}

function* note(takes: readonly PlannedTake[]): Generator<void, void> {
  const buckets = new Map<string, SharedBucket>();
  const unfit = new Set<PlannedTake>();
  /** What was taken from its bucket before each limited take. */
  const takenBefore = new Map<PlannedTake, number>();
  let looked = 0;
  for (const take of takes) {
    const bucket = buckets.get(take.key) ?? new SharedBucket();
    buckets.set(take.key, bucket);
    if (take.outcome?.limited === true) takenBefore.set(take, bucket.taken);
    if (bucket.add(take)) unfit.add(take);
    if (++looked % STEP === 0) yield;
  }
  for (const [take, taken] of takenBefore) {
    if (++looked % STEP === 0) yield;
    const bucket = buckets.get(take.key) as SharedBucket;
    // A take that asks for too much alone is known without this.
    const neverPasses = take.quota ? unfit.has(take) : bucket.isBeyond;
    if (!neverPasses || bucket.asked === take.hits) continue;
    const outcome = take.outcome as TakeOutcome;
    take.outcome = {
      combinedHits: bucket.asked,
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
  if (takes.length > FEW_TAKES) return new Set(takes.map(({ key }) => key)).size < takes.length;
  for (let i = 1; i < takes.length; i++) {
    const { key } = takes[i] as PlannedTake;
    for (let before = 0; before < i; before++) if ((takes[before] as PlannedTake).key === key) return true;
  }
  return false;
}
