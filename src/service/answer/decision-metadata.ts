import { CODE, type DescriptorStatus } from '../../codec/messages.js';
import { planOfCustomer } from '../../policy/plans/customer-plan.js';
import { dependsOnRow } from '../../policy/plans/planned-rules.js';
import { fixedPhase, phaseAt } from '../../policy/rule.js';
import { type Decision, isSoft, type RequestContext } from '../plan.js';
import { canNeverPass, tightestOf, WOULD_DENY } from './denial.js';
import { type DescribedLimit, retryAfterSeconds } from './described-limit.js';

/** The `reason` of a denial that lasts forever. */
const NEVER_PASSES = 'never_passes';
const ACTIVE = fixedPhase('active');

/** Maximum number of members of `passed`, and maximum length of their names. */
const MAX_PASSED = 32;
const MAX_PASSED_NAME = 256;

/**
 * Returns the member `passed`: for the limits that had room for their descriptors, the hits that are left, by the
 * rule's name or else its path. If several descriptors have the same name, it is the smallest number. With more than
 * {@link MAX_PASSED} names, `passed_left_out` is the number of descriptors that the answer omits.
 */
function passedLimits(
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
): Readonly<Record<string, unknown>> {
  // Has no prototype, so that a rule named `__proto__` is an ordinary one.
  const passed: Record<string, number> = Object.create(null);
  let names = 0;
  let leftOut = 0;
  for (let at = 0; at < decisions.length; at++) {
    const { code, limitRemaining } = statuses[at] as DescriptorStatus;
    const shown = tightestOf((decisions[at] as Decision).takes, undefined);
    if (code !== CODE.OK || shown === undefined || shown.outcome.limited) continue;
    const name = shown.name || shown.label;
    const known = passed[name];
    if (known !== undefined) passed[name] = Math.min(known, limitRemaining);
    else if (names === MAX_PASSED || name.length > MAX_PASSED_NAME) leftOut++;
    else {
      passed[name] = limitRemaining;
      names++;
    }
  }
  return { ...(names > 0 && { passed }), ...(leftOut > 0 && { passed_left_out: leftOut }) };
}

/**
 * Returns the member `decision` of the dynamic metadata. It describes the same limit as the headers, with names and
 * numbers of the policy. It contains no value of the request. `retry_after` is 0 unless the request is denied; a denial
 * that lasts forever has a `reason` instead. Undefined if the headers describe no limit.
 */
export function decisionMetadata(
  context: RequestContext,
  described: DescribedLimit | undefined,
  statuses: readonly DescriptorStatus[],
): Readonly<Record<string, unknown>> | undefined {
  if (described === undefined) return undefined;
  const { policy, decisions, denied, wallMicros } = context;
  const { take, rank } = described;
  const { rule, label, name, shadow, outcome } = take;
  const match = decisions.find(({ takes }) => takes.includes(take))?.match;
  const hasRow = rule !== undefined && dependsOnRow(rule);
  const plan = hasRow ? planOfCustomer(policy.plans, match?.entries ?? [])?.plan : undefined;
  const neverPasses = canNeverPass(take) && !isSoft(take);
  const retryAfter = denied ? retryAfterSeconds(take) : 0;
  return {
    code: denied ? 'OVER_LIMIT' : 'OK',
    domain: policy.domain,
    rule: label,
    name,
    limit: take.rate.reportedLimit,
    remaining: outcome.remaining,
    ...(!(denied && neverPasses) && retryAfter !== undefined && { retry_after: retryAfter }),
    ...(plan !== undefined && { plan }),
    phase: phaseAt(rule?.phase ?? match?.phase ?? ACTIVE, wallMicros),
    shadow_mode: shadow,
    would_be_throttled: rank >= WOULD_DENY,
    ...passedLimits(decisions, statuses),
    ...(neverPasses && { reason: NEVER_PASSES }),
  };
}
