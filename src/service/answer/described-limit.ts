import type { DescriptorState, MatchedTake, RequestContext } from '../plan.js';
import { type DecidedTake, hasReset, rankIn, resetMicros, tightestOf } from './denial.js';

const MICROS_PER_SECOND = 1_000_000;

/** The limit that headers, metadata and body describe. */
export interface DescribedLimit {
  readonly take: DecidedTake;
  /** Rank by which it was chosen, see {@link rankIn}: `DENIES`, `WOULD_DENY`, or lower if the request is allowed. */
  readonly rank: number;
  readonly context: RequestContext;
  /** All takes of the request. */
  readonly takes: readonly MatchedTake[];
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
