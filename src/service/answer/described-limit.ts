import type { Decision, PlannedTake, RequestContext } from '../plan.js';
import { type DecidedTake, rankIn, resetMicros, tightestOf } from './denial.js';

const MICROS_PER_SECOND = 1_000_000;

/** The limit that headers, metadata and body describe, and what it was chosen from. */
export interface DescribedLimit {
  readonly take: DecidedTake;
  /** How it was chosen, see {@link rankIn}: `DENIES`, `WOULD_DENY`, or less where the request fits. */
  readonly rank: number;
  readonly context: RequestContext;
  /** All takes of the request, candidates apart. */
  readonly takes: readonly PlannedTake[];
}

/** Every take of a request, candidates apart. */
function liveTakes(decisions: readonly Decision[]): readonly PlannedTake[] {
  const [only] = decisions;
  if (only !== undefined && decisions.length === 1) return only.takes;
  return decisions.flatMap(({ takes }) => takes);
}

function ruleNeedsDescription(takes: readonly PlannedTake[], denied: boolean): boolean {
  for (let i = 0; i < takes.length; i++) {
    const rule = (takes[i] as PlannedTake).rule;
    if (rule === undefined) continue;
    if (rule.responseHeaders !== undefined || rule.requestHeaders !== undefined) return true;
    if (denied && rule.deniedResponse !== undefined) return true;
  }
  return false;
}

/** Whether anything is to be said of one limit; most policies say nothing, and then nothing is looked for. */
function needsDescription({ policy, decisions, options, denied }: RequestContext): boolean {
  if (policy.responseHeaders !== undefined || policy.requestHeaders !== undefined) return true;
  if (policy.decisionMetadata ?? options.answers.decisionMetadata) return true;
  if (denied && policy.deniedResponse !== undefined) return true;
  for (let i = 0; i < decisions.length; i++) {
    if (ruleNeedsDescription((decisions[i] as Decision).takes, denied)) return true;
  }
  return false;
}

/**
 * The limit to describe for the whole request: the denying one that passes last, else the one with the fewest tokens
 * left. Undefined where no policy asks for it, and where no limit applied.
 */
export function describedOf(context: RequestContext): DescribedLimit | undefined {
  if (!needsDescription(context)) return undefined;
  const takes = liveTakes(context.decisions);
  const take = tightestOf(takes, context);
  if (take === undefined) return undefined;
  return { take, rank: rankIn(context, take), context, takes };
}

/** {@link resetMicros} in whole seconds, rounded up; 0 for a full bucket that does not deny. */
export function resetSeconds(take: DecidedTake): number {
  return Math.ceil(resetMicros(take) / MICROS_PER_SECOND);
}

/** Whole seconds to wait after a denial, at least 1: what `retry-after` says, unless the request can never pass. */
export function retryAfterSeconds(take: DecidedTake): number {
  return Math.max(1, resetSeconds(take));
}
