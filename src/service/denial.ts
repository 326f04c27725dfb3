import type { TakeOutcome } from '../limiter/bucket-store.js';
import { type Decision, isPassingQuota, type PlannedTake } from './plan.js';

/** What denies this request. */
export interface Denial {
  /** An enforced bucket is over. */
  readonly enforce: boolean;
  /** Quota buckets are in force, and every one of them is over. */
  readonly quota: boolean;
  /** The same were all phases active. */
  readonly quotaWere: boolean;
}

/** What denies, or but for SHADOW_MODE would. */
export function denialOf(decisions: readonly Decision[], quotaMode: boolean): Denial {
  let enforce = false;
  let enforcedQuotas = 0;
  let enforcedQuotasOver = 0;
  let quotas = 0;
  let quotasOver = 0;
  for (let i = 0; i < decisions.length; i++) {
    const decision = decisions[i] as Decision;
    const { takes } = decision;
    if (isPassingQuota(decision, quotaMode)) {
      enforcedQuotas++;
      if (takes.length === 0) quotas++;
    }
    for (let at = 0; at < takes.length; at++) {
      const take = takes[at] as PlannedTake;
      // A bucket that `on_store_failure: allow` answered for is not over.
      const over = take.outcome?.limited === true;
      if (take.weight === 'enforce' && over) enforce = true;
      if (take.weight === 'quota') {
        enforcedQuotas++;
        if (over) enforcedQuotasOver++;
      }
      if (take.quota) {
        quotas++;
        if (over) quotasOver++;
      }
    }
  }
  return {
    enforce,
    quota: enforcedQuotas > 0 && enforcedQuotas === enforcedQuotasOver,
    quotaWere: quotas > 0 && quotas === quotasOver,
  };
}

function denies(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return outcome.limited && (take.weight === 'enforce' || (take.weight === 'quota' && denial.quota));
}

/** Whether the bucket would deny were its rule active: a quota only together with all others. */
function wouldDeny(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return outcome.limited && (!take.quota || denial.quota || denial.quotaWere);
}

/** How much a take has to do with the answer, by its outcome: the highest are described. */
export type Rank = (take: PlannedTake, outcome: TakeOutcome) => number;

/** For a request: denying, would be denying, fits. */
export function rankIn(denial: Denial): Rank {
  return (take, outcome) => {
    if (denies(take, outcome, denial)) return 2;
    return wouldDeny(take, outcome, denial) ? 1 : 0;
  };
}

/** For one descriptor: over, over but observed, fits. */
export function rankInStatus({ weight }: PlannedTake, { limited }: TakeOutcome): number {
  if (!limited) return 0;
  return weight === 'observe' ? 1 : 2;
}

/**
 * Whether `one` rather than `than` is to be described, both of one rank: the denying one that passes last, else the one with the fewest tokens
 * left; the first of equals.
 */
function tellsMore(one: TakeOutcome, than: TakeOutcome, rank: number): boolean {
  return rank > 0 ? one.waitMicros > than.waitMicros : one.remaining < than.remaining;
}

/** A take that has an outcome. */
export interface Decided {
  readonly take: PlannedTake;
  readonly outcome: TakeOutcome;
}

/** The take to describe, of those that have an outcome: the tightest. */
export function tightestOf(takes: readonly PlannedTake[], rankOf: Rank): Decided | undefined {
  let tightest: Decided | undefined;
  let itsRank = -1;
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as PlannedTake;
    const { outcome } = take;
    if (outcome === undefined) continue;
    const rank = rankOf(take, outcome);
    if (
      tightest === undefined ||
      rank > itsRank ||
      (rank === itsRank && tellsMore(outcome, tightest.outcome, rank))
    ) {
      tightest = { take, outcome };
      itsRank = rank;
    }
  }
  return tightest;
}
