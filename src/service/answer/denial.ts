import type { TakeOutcome } from '../../limiter/bucket-store.js';
import { isBeyondLimit } from '../../limiter/rate.js';
import { type Decision, isPassingQuota, type PlannedTake, type RequestContext } from '../plan.js';

const MICROS_PER_SECOND = 1_000_000;

/** What denies a request. */
type Denial = Pick<RequestContext, 'limitDenies' | 'quotasDeny' | 'quotasWouldDeny'>;

/** Notes what denies the request, or would without SHADOW_MODE, once all of its takes have their outcomes. */
export function noteDenial(context: RequestContext): void {
  const { decisions } = context;
  const { quotaMode, shadowMode } = context.options.answers;
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
      if (take.ruleEnforcement === 'enforce' && over) context.limitDenies = true;
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
  context.quotasDeny = enforcedQuotas > 0 && enforcedQuotas === enforcedQuotasOver;
  context.quotasWouldDeny = quotas > 0 && quotas === quotasOver;
  context.denied = (context.limitDenies || context.quotasDeny) && !shadowMode;
}

function denies(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return (
    outcome.limited &&
    (take.ruleEnforcement === 'enforce' || (take.ruleEnforcement === 'quota' && denial.quotasDeny))
  );
}

/** Whether the bucket would deny were its rule active: a quota only together with all others. */
function wouldDeny(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return outcome.limited && (!take.quota || denial.quotasDeny || denial.quotasWouldDeny);
}

/** A take that the store, or the failure policy, has decided. */
export type DecidedTake = PlannedTake & { readonly outcome: TakeOutcome };

/** Ranks of takes: the highest is described. */
export const DENIES = 3;
export const WOULD_DENY = 2;
const ALLOWS = 1;
/** Fits, or is only observed, where others are not. */
const UNRANKED = 0;

/** How much a take has to do with the answer to its request: it denies it, would deny it, or fits. */
export function rankIn(denial: Denial, take: DecidedTake): number {
  const { outcome } = take;
  if (denies(take, outcome, denial)) return DENIES;
  return wouldDeny(take, outcome, denial) ? WOULD_DENY : UNRANKED;
}

/**
 * How much it has to do with the status of its descriptor: what is enforced comes first, so that nobody sees less left
 * than there is.
 */
function rankInStatus({ ruleEnforcement, outcome }: DecidedTake): number {
  if (ruleEnforcement === 'observe') return UNRANKED;
  return outcome.limited ? DENIES : ALLOWS;
}

/**
 * Microseconds until the reset that answers tell: of a denial until the hits pass, or, as they never do, until the
 * bucket is full. A full one that denies says how long it takes to fill from empty, so that nobody asks again at once.
 */
export function resetMicros({ outcome, rate }: DecidedTake): number {
  const { waitMicros, limited } = outcome;
  return limited && waitMicros === 0 ? rate.periodSeconds(0) * MICROS_PER_SECOND : waitMicros;
}

/**
 * Whether a denial lasts for ever: the take asks for more than its limit can hold, alone (see {@link isBeyondLimit}) or
 * together with others of its request. Not where `enforce_percent` lets some denials pass: the next one may be among
 * them.
 */
export function canNeverPass({ rate, hits, refund, outcome, rule }: DecidedTake): boolean {
  if (!outcome.limited) return false;
  if (outcome.combinedHits === undefined && !isBeyondLimit(rate, hits, refund)) return false;
  return rule === undefined || rule.enforcePercent === 0 || rule.enforcePercent === 100;
}

/** Microseconds, beyond any wait (MAX_FILL_MICROS); with one added still exact. */
const NEVER_MICROS = 2 ** 52;

/** Microseconds until a limited take passes; those that never do come last, in the order of their resets. */
export function passesAfter(take: DecidedTake): number {
  return canNeverPass(take) ? NEVER_MICROS + resetMicros(take) : take.outcome.waitMicros;
}

/** The same where quotas deny together, and one of them will pass: those that never do deny nothing then. */
function passesAfterAmongQuotas(take: DecidedTake): number {
  return take.quota && canNeverPass(take) ? -1 : passesAfter(take);
}

/**
 * Whether `one` rather than `than` is to be described, both of one rank: the denying one that passes last, else the one
 * with the fewest tokens left; the first of equals.
 */
function isDescribedBefore(
  take: DecidedTake,
  other: DecidedTake,
  rank: number,
  wait: typeof passesAfter,
): boolean {
  return rank >= WOULD_DENY ? wait(take) > wait(other) : take.outcome.remaining < other.outcome.remaining;
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
  const [only] = takes;
  // By far the most frequent.
  if (only !== undefined && takes.length === 1) return isDecided(only) ? only : undefined;
  const tightest = tightestBy(takes, denial, passesAfter);
  if (denial === undefined || tightest?.quota !== true || !canNeverPass(tightest)) return tightest;
  const rank = rankIn(denial, tightest);
  const willPass = (take: PlannedTake): boolean =>
    take.quota && isDecided(take) && rankIn(denial, take) === rank && !canNeverPass(take);
  return takes.some(willPass) ? tightestBy(takes, denial, passesAfterAmongQuotas) : tightest;
}

function tightestBy(
  takes: readonly PlannedTake[],
  denial: Denial | undefined,
  wait: typeof passesAfter,
): DecidedTake | undefined {
  let tightest: DecidedTake | undefined;
  let tightestRank = -1;
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as PlannedTake;
    if (!isDecided(take)) continue;
    const rank = denial === undefined ? rankInStatus(take) : rankIn(denial, take);
    if (
      tightest === undefined ||
      rank > tightestRank ||
      (rank === tightestRank && isDescribedBefore(take, tightest, rank, wait))
    ) {
      tightest = take;
      tightestRank = rank;
    }
  }
  return tightest;
}
