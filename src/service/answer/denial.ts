import type { TakeOutcome } from '../../limiter/bucket-store.js';
import { type Decision, isPassingQuota, type PlannedTake } from '../plan.js';

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
      if (take.ruleEnforcement === 'enforce' && over) enforce = true;
      if (take.ruleEnforcement === 'quota') {
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
  return (
    outcome.limited &&
    (take.ruleEnforcement === 'enforce' || (take.ruleEnforcement === 'quota' && denial.quota))
  );
}

/** Whether the bucket would deny were its rule active: a quota only together with all others. */
function wouldDeny(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return outcome.limited && (!take.quota || denial.quota || denial.quotaWere);
}

/** A take that the store, or the failure policy, has decided. */
export type DecidedTake = PlannedTake & { readonly outcome: TakeOutcome };

/** Ranks of takes: the highest is described. */
export const DENIES = 3;
export const WOULD_DENY = 2;
const FITS = 1;
/** Fits, or is only observed, where others are not. */
const LEAST = 0;

/** How much a take has to do with the answer to its request: it denies it, would deny it, or fits. */
export function rankIn(denial: Denial, take: DecidedTake): number {
  const { outcome } = take;
  if (denies(take, outcome, denial)) return DENIES;
  return wouldDeny(take, outcome, denial) ? WOULD_DENY : LEAST;
}

/**
 * How much it has to do with the status of its descriptor: what is enforced comes first, so that nobody sees less left
 * than there is.
 */
function rankInStatus({ ruleEnforcement, outcome }: DecidedTake): number {
  if (ruleEnforcement === 'observe') return LEAST;
  return outcome.limited ? DENIES : FITS;
}

/**
 * Whether `one` rather than `than` is to be described, both of one rank: the denying one that passes last, else the one
 * with the fewest tokens left; the first of equals.
 */
function tellsMore(one: TakeOutcome, than: TakeOutcome, rank: number): boolean {
  return rank >= WOULD_DENY ? one.waitMicros > than.waitMicros : one.remaining < than.remaining;
}

/** Whether a take has an outcome. */
export function isDecided(take: PlannedTake): take is DecidedTake {
  return take.outcome !== undefined;
}

/**
 * The take to describe, of those that are decided: the tightest. For a request its `denial`, for the status of one
 * descriptor undefined.
 */
export function tightestOf(
  takes: readonly PlannedTake[],
  denial: Denial | undefined,
): DecidedTake | undefined {
  let tightest: DecidedTake | undefined;
  let itsRank = -1;
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as PlannedTake;
    if (!isDecided(take)) continue;
    // By far the most frequent.
    if (takes.length === 1) return take;
    const rank = denial === undefined ? rankInStatus(take) : rankIn(denial, take);
    if (
      tightest === undefined ||
      rank > itsRank ||
      (rank === itsRank && tellsMore(take.outcome, tightest.outcome, rank))
    ) {
      tightest = take;
      itsRank = rank;
    }
  }
  return tightest;
}
