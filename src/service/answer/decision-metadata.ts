import type { LiveControl } from '../../limiter/control.js';
import { fixedPhase, phaseAt } from '../../policy/rule.js';
import { controlMember } from '../controls/reported-control.js';
import type { Decision, RequestContext } from '../plan.js';
import { canNeverPass, WOULD_DENY } from './denial.js';
import { type DescribedLimit, retryAfterSeconds } from './described-limit.js';

/** The `reason` of a denial that lasts forever. */
const NEVER_PASSES = 'never_passes';
const ACTIVE = fixedPhase('active');

/** Returns the first exemption among the decisions. */
function exemptionOf(decisions: readonly Decision[]): LiveControl | undefined {
  return decisions.find(({ control }) => control !== undefined)?.control;
}

/**
 * Returns the member `decision` for a request without a limit to describe; undefined unless a descriptor is exempted.
 */
function exemptionMetadata({
  policy,
  decisions,
}: RequestContext): Readonly<Record<string, unknown>> | undefined {
  const exemption = exemptionOf(decisions);
  if (exemption === undefined) return undefined;
  return { code: 'OK', domain: policy.domain, ...controlMember(exemption) };
}

/**
 * Returns the member `decision` of the dynamic metadata. It describes the same limit as the headers, with names and
 * numbers of the policy, and the exemption of another descriptor if there is one. It contains no value of the request.
 * `retry_after` is 0 unless the request is denied; a denial that lasts forever has a `reason` instead.
 */
export function decisionMetadata(
  context: RequestContext,
  described: DescribedLimit | undefined,
): Readonly<Record<string, unknown>> | undefined {
  if (described === undefined) return exemptionMetadata(context);
  const { policy, decisions, denied, wallMicros } = context;
  const { take, rank } = described;
  const { rule, label, name, shadow, outcome } = take;
  const phase = rule?.phase ?? decisions.find(({ takes }) => takes.includes(take))?.match.phase ?? ACTIVE;
  const neverPasses = canNeverPass(take);
  const retryAfter = denied ? retryAfterSeconds(take) : 0;
  return {
    code: denied ? 'OVER_LIMIT' : 'OK',
    domain: policy.domain,
    rule: label,
    name,
    limit: take.rate.reportedLimit,
    remaining: outcome.remaining,
    ...(!(denied && neverPasses) && retryAfter !== undefined && { retry_after: retryAfter }),
    phase: phaseAt(phase, wallMicros),
    shadow_mode: shadow,
    would_be_throttled: rank >= WOULD_DENY,
    ...controlMember(exemptionOf(decisions)),
    ...(neverPasses && { reason: NEVER_PASSES }),
  };
}
