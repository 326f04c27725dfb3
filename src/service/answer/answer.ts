import {
  CODE,
  type DescriptorStatus,
  type HeaderValue,
  type RateLimitRequest,
  type RateLimitResponse,
} from '../../codec/messages.js';
import { MAX_UINT32 } from '../../limiter/rate-algorithm.js';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import { planOfCustomer } from '../../policy/plans/plan-nodes.js';
import { dependsOnRow } from '../../policy/plans/plan-rules.js';
import { type AddedHeader, fixedPhase, type OnOver, phaseAt } from '../../policy/rule.js';
import type { GivenUpReason } from '../record/decision-record.js';
import { type DescriptorState, isSoft, type RequestContext } from '../request-context.js';
import type { AnswerOptions } from './answer-options.js';
import {
  canNeverPass,
  type DescribedLimit,
  describedOf,
  resetSeconds,
  retryAfterSeconds,
  tightestOf,
  WOULD_DENY,
} from './denial.js';
import { bodyWithoutLimit, deniedBody } from './denied-response.js';
import {
  dynamicMetadata,
  Merged,
  redactedKeys,
  withDecision,
  withOver,
  withToken,
} from './dynamic-metadata.js';
import { answerOf, headersToAdd, NO_HEADERS } from './response-headers.js';

const STATUS_WITHOUT_LIMIT: DescriptorStatus = {
  code: CODE.OK,
  currentLimit: undefined,
  limitRemaining: 0,
  durationUntilResetSeconds: undefined,
};

/** Status for `unlimited: true`, as in the reference: no limit, and the largest value as the remaining hits. */
const STATUS_UNLIMITED: DescriptorStatus = { ...STATUS_WITHOUT_LIMIT, limitRemaining: MAX_UINT32 };

function statusWithoutLimit(unlimited: boolean): DescriptorStatus {
  return unlimited ? STATUS_UNLIMITED : STATUS_WITHOUT_LIMIT;
}

function statusOf({ takes, unlimited }: DescriptorState): DescriptorStatus {
  const shown = tightestOf(takes, undefined);
  if (shown === undefined) return statusWithoutLimit(unlimited);
  const { outcome, ruleEnforcement } = shown;
  return {
    code: outcome.overLimit && ruleEnforcement !== 'observe' ? CODE.OVER_LIMIT : CODE.OK,
    currentLimit: answerOf(shown).currentLimit,
    limitRemaining: Math.min(outcome.remaining, MAX_UINT32),
    durationUntilResetSeconds: resetSeconds(shown),
  };
}

/** Builds the response of a decided request, with one status per descriptor, in order. */
export function answer(context: RequestContext): RateLimitResponse {
  const { states, denied } = context;
  const statuses = new Array<DescriptorStatus>(states.length);
  for (let i = 0; i < states.length; i++) statuses[i] = statusOf(states[i] as DescriptorState);
  const described = describedOf(context);
  const headers = headersToAdd(context, statuses, described, false);
  const upstreamHeaders = headersToAdd(context, statuses, described, true);
  const body = denied && described !== undefined ? deniedBody(described) : undefined;
  const additions = onOverAdditionsOf(context);
  return {
    overallCode: denied ? CODE.OVER_LIMIT : CODE.OK,
    statuses,
    responseHeadersToAdd: body?.contentType === undefined ? headers : [...headers, body.contentType],
    requestHeadersToAdd:
      additions === undefined ? upstreamHeaders : [...upstreamHeaders, ...additions.headers],
    rawBody: body?.body,
    dynamicMetadata: metadataOf(context, statuses, described, additions?.metadata),
  };
}

/** Returns the dynamic metadata; undefined without any, which is the most frequent case. */
function metadataOf(
  context: RequestContext,
  statuses: readonly DescriptorStatus[],
  described: DescribedLimit | undefined,
  over: OnOverAdditions['metadata'],
): RateLimitResponse['dynamicMetadata'] {
  const { request, states, policy, token } = context;
  const options = context.options.answers;
  const addsDecision = policy.decisionMetadata ?? options.decisionMetadata;
  if (!options.dynamicMetadata && !addsDecision && over === undefined && token === undefined)
    return undefined;
  const metadata = options.dynamicMetadata
    ? dynamicMetadata(request, states, statuses, redactedKeys(context))
    : undefined;
  const decision = addsDecision ? decisionMetadata(context, described, statuses) : undefined;
  const withMarks = withOver(withDecision(metadata, decision, context), over);
  return withToken(withMarks, token, options.holdNames.metadataKey);
}

/** Answers a request for a domain without a policy: every descriptor OK, no headers. */
export function answerWithoutLimits(
  request: RateLimitRequest,
  policies: PolicySet,
  options: AnswerOptions,
): RateLimitResponse {
  // The descriptors of a request above a bound are unknown.
  const statuses = request.exceeded ? [] : request.descriptors.map(() => STATUS_WITHOUT_LIMIT);
  return {
    overallCode: CODE.OK,
    statuses,
    responseHeadersToAdd: NO_HEADERS,
    requestHeadersToAdd: NO_HEADERS,
    rawBody: undefined,
    dynamicMetadata: options.dynamicMetadata
      ? dynamicMetadata(request, [], statuses, secretKeysOf(policies))
      : undefined,
  };
}

export function secretKeysOf(policies: PolicySet): ReadonlySet<string> {
  const all = new Set<string>();
  for (const policy of policies.domains.values()) for (const key of policy.secretKeys) all.add(key);
  return all;
}

/** Maximum number of headers that soft limits add to one request. Each has another name. */
const MAX_HEADERS = 64;

/** The marks of a request that passed over soft limits (`on_over`). */
interface OnOverAdditions {
  /** Headers for the upstream request. */
  readonly headers: readonly HeaderValue[];
  /** Merged metadata of the limits; undefined if none has any. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Returns the marks of an allowed request; undefined if it is over no soft limit. If several limits set the same header
 * or the same member of the metadata, the first one wins.
 */
function onOverAdditionsOf({ policy, states, denied }: RequestContext): OnOverAdditions | undefined {
  if (!policy.hasSoftLimits || denied) return undefined;
  let exceeded: Set<OnOver> | undefined;
  for (const { takes } of states) {
    for (const { appliesOnOver, outcome, rule } of takes) {
      if (!appliesOnOver || outcome?.overLimit !== true || rule?.onOver === undefined) continue;
      exceeded ??= new Set();
      exceeded.add(rule.onOver);
    }
  }
  if (exceeded === undefined) return undefined;
  const headers = new Map<string, AddedHeader>();
  const merged = new Merged();
  let isFull = false;
  for (const { requestHeaders, metadata } of exceeded) {
    for (const header of requestHeaders) {
      if (headers.size < MAX_HEADERS && !headers.has(header.key)) headers.set(header.key, header);
    }
    if (metadata !== undefined && !isFull) isFull = !merged.add(metadata);
  }
  return { headers: [...headers.values()], metadata: merged.isEmpty ? undefined : merged.members };
}

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
  states: readonly DescriptorState[],
  statuses: readonly DescriptorStatus[],
): Readonly<Record<string, unknown>> {
  // Has no prototype, so that a rule named `__proto__` is an ordinary one.
  const passed: Record<string, number> = Object.create(null);
  let names = 0;
  let leftOut = 0;
  for (let at = 0; at < states.length; at++) {
    const { code, limitRemaining } = statuses[at] as DescriptorStatus;
    const shown = tightestOf((states[at] as DescriptorState).takes, undefined);
    if (code !== CODE.OK || shown === undefined || shown.outcome.overLimit) continue;
    const name = shown.name || shown.rulePath;
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
function decisionMetadata(
  context: RequestContext,
  described: DescribedLimit | undefined,
  statuses: readonly DescriptorStatus[],
): Readonly<Record<string, unknown>> | undefined {
  if (described === undefined) return undefined;
  const { policy, states, denied, wallMicros } = context;
  const { take, rank } = described;
  const { rule, rulePath, name, shadow, outcome } = take;
  const match = states.find(({ takes }) => takes.includes(take))?.match;
  const hasRow = rule !== undefined && dependsOnRow(rule);
  const plan = hasRow ? planOfCustomer(policy.plans, match?.entries ?? [])?.plan : undefined;
  const neverPasses = canNeverPass(take) && !isSoft(take);
  const retryAfter = denied ? retryAfterSeconds(take) : 0;
  return {
    code: denied ? 'OVER_LIMIT' : 'OK',
    domain: policy.domain,
    rule: rulePath,
    name,
    ...(rule !== undefined && rule.className !== '' && { class: rule.className }),
    limit: take.rate.reportedLimit,
    remaining: outcome.remaining,
    ...(!(denied && neverPasses) && retryAfter !== undefined && { retry_after: retryAfter }),
    ...(plan !== undefined && { plan }),
    phase: phaseAt(rule?.phase ?? match?.phase ?? ACTIVE, wallMicros),
    shadow_mode: shadow,
    would_be_throttled: rank >= WOULD_DENY,
    ...passedLimits(states, statuses),
    ...(neverPasses && { reason: NEVER_PASSES }),
  };
}

/** When such a request would pass is unknown, so the caller should retry after 1 s. */
const WAIT_SECONDS = 1;
const RETRY_AFTER = [{ key: 'retry-after', value: String(WAIT_SECONDS) }];

/**
 * Answers a request without a decision: OVER_LIMIT if it `denies`, otherwise OK without headers. There are no statuses,
 * because the limits are unknown.
 */
export function givenUpAnswer(
  context: RequestContext,
  reason: GivenUpReason,
  denies: boolean,
): RateLimitResponse {
  const { policy } = context;
  const { envoyAdds, decisionMetadata } = context.options.answers;
  const headers =
    denies && policy.responseHeaders?.retryAfter === true && !envoyAdds.retryAfter ? RETRY_AFTER : NO_HEADERS;
  const body = denies ? bodyWithoutLimit(policy.deniedResponse) : undefined;
  const addsDecision = policy.decisionMetadata ?? decisionMetadata;
  return {
    overallCode: denies ? CODE.OVER_LIMIT : CODE.OK,
    statuses: [],
    responseHeadersToAdd: body?.contentType === undefined ? headers : [...headers, body.contentType],
    requestHeadersToAdd: NO_HEADERS,
    rawBody: body?.body,
    dynamicMetadata: addsDecision
      ? withDecision(undefined, decisionWithoutLimit(policy, reason, denies), context)
      : undefined,
  };
}

/** Returns the member `decision` of the dynamic metadata. It has the same members as one with a limit. */
function decisionWithoutLimit(
  { domain }: CompiledPolicy,
  reason: GivenUpReason,
  denies: boolean,
): Readonly<Record<string, unknown>> {
  return {
    code: denies ? 'OVER_LIMIT' : 'OK',
    domain,
    rule: '',
    name: '',
    limit: 0,
    remaining: 0,
    retry_after: denies ? WAIT_SECONDS : 0,
    phase: 'active',
    shadow_mode: false,
    would_be_throttled: true,
    reason,
  };
}
