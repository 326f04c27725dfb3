import type { TakeOutcome } from '../../limiter/bucket-store.js';
import { isBeyondLimit } from '../../limiter/rate.js';
import type { HeaderFamilies } from '../../policy/rule.js';
import { isPassingQuota } from '../enforcement.js';
import {
  chainsOf,
  type DescriptorState,
  isSoft,
  type MatchedTake,
  type RequestContext,
  takesOf,
} from '../request-context.js';

const MICROS_PER_SECOND = 1_000_000;

/** The reasons for the denial of a request. */
type Denial = Pick<RequestContext, 'limitDenies' | 'quotasDeny' | 'quotasWouldDeny'>;

/** Records what denies the request, or would deny it without SHADOW_MODE, after all of its takes have outcomes. */
export function noteDenial(context: RequestContext): void {
  const { states, policy } = context;
  if (policy.hasSpills) {
    keepPayingTakes(states);
    context.takes = takesOf(states);
  }
  const { takes } = context;
  // A take that `on_store_failure: allow` answered is not over its limit.
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as MatchedTake;
    if (take.ruleEnforcement === 'enforce' && take.outcome?.overLimit === true) context.limitDenies = true;
  }
  const { quotaMode, shadowMode } = context.options.answers;
  if (quotaMode || policy.hasQuotas) noteQuotas(context, quotaMode);
  context.denied = (context.limitDenies || context.quotasDeny) && !shadowMode;
}

/** Records whether the quotas of a request deny it together. */
function noteQuotas(context: RequestContext, quotaMode: boolean): void {
  const { states } = context;
  let enforcedQuotas = 0;
  let enforcedQuotasOver = 0;
  let quotas = 0;
  let quotasOver = 0;
  for (let i = 0; i < states.length; i++) {
    const state = states[i] as DescriptorState;
    const { takes } = state;
    if (isPassingQuota(state, quotaMode)) {
      enforcedQuotas++;
      if (!takes.some(({ quota }) => quota)) quotas++;
    }
    for (let at = 0; at < takes.length; at++) {
      const take = takes[at] as MatchedTake;
      const over = take.outcome?.overLimit === true;
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
}

function denies(take: MatchedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return (
    outcome.overLimit &&
    (take.ruleEnforcement === 'enforce' || (take.ruleEnforcement === 'quota' && denial.quotasDeny))
  );
}

/**
 * Returns whether the take would deny if its rule were active: a quota denies only together with all others, and a soft
 * limit never denies.
 */
function wouldDeny(take: MatchedTake, outcome: TakeOutcome, denial: Denial): boolean {
  if (!outcome.overLimit || isSoft(take)) return false;
  return !take.quota || denial.quotasDeny || denial.quotasWouldDeny;
}

/** A take that the store or the failure policy has decided. */
export type DecidedTake = MatchedTake & { readonly outcome: TakeOutcome };

/** Ranks of takes; the take with the highest rank is described. */
export const DENIES = 3;
export const WOULD_DENY = 2;
const ALLOWS = 1;
/** Rank of takes that are allowed or only observed. */
const UNRANKED = 0;
/** Rank of soft limits, which are described only if no other limit applies. */
const SOFT = -1;

/** Returns the rank by which the take to describe in the answer is selected: the take denies, would deny, or allows. */
export function rankIn(denial: Denial, take: DecidedTake): number {
  const { outcome } = take;
  if (isSoft(take)) return SOFT;
  if (denies(take, outcome, denial)) return DENIES;
  return wouldDeny(take, outcome, denial) ? WOULD_DENY : UNRANKED;
}

/**
 * Returns the rank by which the take to describe in the status of a descriptor is selected. Takes that are only
 * observed rank lower, because they do not limit the caller.
 */
function rankInStatus(take: DecidedTake): number {
  const { ruleEnforcement, outcome } = take;
  if (isSoft(take)) return SOFT;
  if (ruleEnforcement === 'observe') return UNRANKED;
  return outcome.overLimit ? DENIES : ALLOWS;
}

/**
 * Returns whether the time of a reset is known. The end of a request can make room at any time, so it is unknown for a
 * limit on concurrent requests, and for a denial by a limit with holds.
 */
export function hasReset({ rate, rule, outcome }: DecidedTake): boolean {
  return rate.kind !== 'concurrency' && !(outcome.overLimit && rule?.hold !== undefined);
}

/**
 * Returns the microseconds until the reset that answers report. For a denial, this is the time until the hits pass, or
 * until the bucket is full if they never do. For a full bucket that denies, it is the time to fill from empty, so that
 * callers do not retry at once.
 */
export function resetMicros({ outcome, rate }: DecidedTake): number {
  const { waitMicros, overLimit } = outcome;
  return overLimit && waitMicros === 0 ? rate.periodSeconds(0) * MICROS_PER_SECOND : waitMicros;
}

/**
 * Returns whether a denial lasts forever: the take requests more than its limit can hold, alone (see
 * {@link isBeyondLimit}) or together with others of its request. With an `enforce_percent` between 0 and 100 it does
 * not: the next request may not be enforced.
 */
export function canNeverPass({ rate, hits, refund, outcome, rule }: DecidedTake): boolean {
  if (!outcome.overLimit) return false;
  if (outcome.combinedHits === undefined && !isBeyondLimit(rate, hits, refund)) return false;
  return rule === undefined || rule.enforcePercent === 0 || rule.enforcePercent === 100;
}

/** Larger than any wait in microseconds (MAX_FILL_MICROS); a sum of both is still exact. */
const NEVER_MICROS = 2 ** 52;
/** Wait until an unknown time, larger than any known one. */
const UNKNOWN_MICROS = NEVER_MICROS - 1;

/**
 * Returns the microseconds until a limited take passes. Takes that pass at an unknown time sort after others. Takes
 * that never pass sort last, in the order of their resets.
 */
export function passesAfter(take: DecidedTake): number {
  if (canNeverPass(take)) return NEVER_MICROS + (hasReset(take) ? resetMicros(take) : 0);
  return hasReset(take) ? take.outcome.waitMicros : UNKNOWN_MICROS;
}

/**
 * Variant of {@link passesAfter} for quotas of which one will pass: quotas that never pass do not deny then, so they
 * sort first.
 */
function passesAfterAmongQuotas(take: DecidedTake): number {
  return take.quota && canNeverPass(take) ? -1 : passesAfter(take);
}

/**
 * Returns whether `take` is described rather than `other`, which has the same rank. The denying take that passes last
 * comes first, otherwise the take with the fewest tokens remaining. Equal takes keep their order.
 */
function isDescribedBefore(
  take: DecidedTake,
  other: DecidedTake,
  rank: number,
  wait: typeof passesAfter,
): boolean {
  return rank >= WOULD_DENY ? wait(take) > wait(other) : take.outcome.remaining < other.outcome.remaining;
}

export function isDecided(take: MatchedTake): take is DecidedTake {
  return take.outcome !== undefined;
}

/**
 * Returns the tightest of the decided takes, which the answer describes. `denial` is undefined for the status of one
 * descriptor.
 */
export function tightestOf(
  takes: readonly MatchedTake[],
  denial: Denial | undefined,
): DecidedTake | undefined {
  const only = takes[0];
  // This is by far the most frequent case.
  if (only !== undefined && takes.length === 1) return isDecided(only) ? only : undefined;
  const tightest = tightestBy(takes, denial, passesAfter);
  if (denial === undefined || tightest?.quota !== true || !canNeverPass(tightest)) return tightest;
  const rank = rankIn(denial, tightest);
  const willPass = (take: MatchedTake): boolean =>
    take.quota && isDecided(take) && rankIn(denial, take) === rank && !canNeverPass(take);
  return takes.some(willPass) ? tightestBy(takes, denial, passesAfterAmongQuotas) : tightest;
}

function tightestBy(
  takes: readonly MatchedTake[],
  denial: Denial | undefined,
  wait: typeof passesAfter,
): DecidedTake | undefined {
  let tightest: DecidedTake | undefined;
  let tightestRank = SOFT;
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as MatchedTake;
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

/**
 * Keeps only one limit of each chain (`then`): the one that paid, or, if all of them are over, the one that passes
 * first. It answers for the chain, in the way in which the last limit of the chain would.
 */
export function keepPayingTakes(states: readonly DescriptorState[]): void {
  for (const state of states) {
    if (!state.takes.some(({ enforcement }) => enforcement === 'spill')) continue;
    state.takes = chainsOf(state.takes).map(payingTake);
  }
}

function payingTake(chain: readonly MatchedTake[]): MatchedTake {
  const last = chain.at(-1) as MatchedTake;
  const payer = chain.find(({ outcome }) => outcome?.overLimit === false) ?? soonest(chain) ?? last;
  payer.chain = chain;
  payer.enforcement = last.enforcement;
  payer.ruleEnforcement = last.ruleEnforcement;
  return payer;
}

/** Returns the limit that passes first; undefined if none has an outcome. */
function soonest(chain: readonly MatchedTake[]): MatchedTake | undefined {
  const decided = chain.filter(isDecided);
  return decided.reduce<(typeof decided)[number] | undefined>(
    (first, take) => (first === undefined || passesAfter(take) < passesAfter(first) ? take : first),
    undefined,
  );
}

/** The limit that headers, metadata and body describe. */
export interface DescribedLimit {
  readonly take: DecidedTake;
  /** Rank by which it was chosen, see {@link rankIn}: `DENIES`, `WOULD_DENY`, or lower if the request is allowed. */
  readonly rank: number;
  readonly context: RequestContext;
  /** All takes of the request. */
  readonly takes: readonly MatchedTake[];
}

/**
 * Returns the header families that the rule of a take sets, or else the header families that the policy file sets.
 * `upstream` selects the families of the request instead of the response.
 */
export function familiesOf(
  { rule }: MatchedTake,
  domainFamilies: HeaderFamilies | undefined,
  upstream: boolean,
): HeaderFamilies | undefined {
  return (upstream ? rule?.requestHeaders : rule?.responseHeaders) ?? domainFamilies;
}

function ruleNeedsDescription(takes: readonly MatchedTake[], denied: boolean): boolean {
  for (let i = 0; i < takes.length; i++) {
    const rule = (takes[i] as MatchedTake).rule;
    if (rule === undefined) continue;
    if (rule.responseHeaders !== undefined || rule.requestHeaders !== undefined) return true;
    if (denied && rule.deniedResponse !== undefined) return true;
  }
  return false;
}

/**
 * Returns whether headers, metadata or body describe a limit. For most policies they do not, and the search is skipped.
 */
function needsDescription({ policy, states, options, denied }: RequestContext): boolean {
  if (policy.responseHeaders !== undefined || policy.requestHeaders !== undefined) return true;
  if (policy.decisionMetadata ?? options.answers.decisionMetadata) return true;
  if (denied && policy.deniedResponse !== undefined) return true;
  for (let i = 0; i < states.length; i++) {
    if (ruleNeedsDescription((states[i] as DescriptorState).takes, denied)) return true;
  }
  return false;
}

/**
 * Returns the limit to describe for the whole request: the denying limit that passes last, otherwise the limit with the
 * fewest tokens remaining. Undefined if no policy requests a description, or if no limit applied.
 */
export function describedOf(context: RequestContext): DescribedLimit | undefined {
  if (!needsDescription(context)) return undefined;
  const { takes } = context;
  const take = tightestOf(takes, context);
  if (take === undefined) return undefined;
  return { take, rank: rankIn(context, take), context, takes };
}

/**
 * Returns {@link resetMicros} in whole seconds, rounded up; 0 for a full bucket that does not deny, and undefined if
 * the time is unknown.
 */
export function resetSeconds(take: DecidedTake): number | undefined {
  return hasReset(take) ? Math.ceil(resetMicros(take) / MICROS_PER_SECOND) : undefined;
}

/** Returns the whole seconds until a denied request passes, at least 1, or undefined if the time is unknown. */
export function deniedResetSeconds(take: DecidedTake): number | undefined {
  const seconds = resetSeconds(take);
  return seconds === undefined ? undefined : Math.max(1, seconds);
}

/**
 * Returns the whole seconds to wait after a denial, or undefined if the time is unknown. This is the value of
 * `retry-after`, unless the request can never pass. A concurrency limit may set it, because its reset is unknown.
 */
export function retryAfterSeconds(take: DecidedTake): number | undefined {
  return deniedResetSeconds(take) ?? take.rule?.hold?.retryAfterSeconds;
}
