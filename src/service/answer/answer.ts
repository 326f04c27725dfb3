import {
  CODE,
  type CurrentLimit,
  type DescriptorStatus,
  LIMIT_UNIT,
  type RateLimitRequest,
  type RateLimitResponse,
} from '../../codec/messages.js';
import { MAX_UINT32 } from '../../limiter/rate.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { Decision, PlannedTake, RequestContext } from '../plan.js';
import type { AnswerOptions } from './answer-options.js';
import { decisionMetadata } from './decision-metadata.js';
import { tightestOf } from './denial.js';
import { deniedBody } from './denied-response.js';
import { describedOf, resetSeconds } from './described-limit.js';
import { dynamicMetadata, redactedKeys, withDecision, withOver, withToken } from './dynamic-metadata.js';
import { marksOf } from './marks.js';
import { headersToAdd, NO_HEADERS } from './response-headers.js';

/** Status of a descriptor without a limit. */
const STATUS_WITHOUT_LIMIT: DescriptorStatus = {
  code: CODE.OK,
  currentLimit: undefined,
  limitRemaining: 0,
  durationUntilResetSeconds: undefined,
};

/** Status for `unlimited: true`, as in the reference: no limit, and the largest value as the remaining hits. */
const STATUS_UNLIMITED: DescriptorStatus = { ...STATUS_WITHOUT_LIMIT, limitRemaining: MAX_UINT32 };

/** Returns the status of a descriptor without a limit. */
function statusWithoutLimit(unlimited: boolean): DescriptorStatus {
  return unlimited ? STATUS_UNLIMITED : STATUS_WITHOUT_LIMIT;
}

function currentLimit({ name, rate }: PlannedTake): CurrentLimit {
  const unit = LIMIT_UNIT[rate.reportedUnit ?? 'unknown'];
  return { name, requestsPerUnit: rate.reportedLimit, unit };
}

function statusOf({ takes, unlimited }: Decision): DescriptorStatus {
  const shown = tightestOf(takes, undefined);
  if (shown === undefined) return statusWithoutLimit(unlimited);
  const { outcome, ruleEnforcement } = shown;
  return {
    code: outcome.limited && ruleEnforcement !== 'observe' ? CODE.OVER_LIMIT : CODE.OK,
    currentLimit: currentLimit(shown),
    limitRemaining: Math.min(outcome.remaining, MAX_UINT32),
    durationUntilResetSeconds: resetSeconds(shown),
  };
}

/** Builds the response of a decided request, with one status per descriptor, in order. */
export function answer(context: RequestContext): RateLimitResponse {
  const { request, policy, decisions, denied } = context;
  const options = context.options.answers;
  const statuses = new Array<DescriptorStatus>(decisions.length);
  for (let i = 0; i < decisions.length; i++) statuses[i] = statusOf(decisions[i] as Decision);
  const described = describedOf(context);
  const headers = headersToAdd(context, statuses, described, false);
  const upstreamHeaders = headersToAdd(context, statuses, described, true);
  const body = denied && described !== undefined ? deniedBody(described) : undefined;
  const metadata = options.dynamicMetadata
    ? dynamicMetadata(request, decisions, statuses, redactedKeys(context))
    : undefined;
  const addsDecision = policy.decisionMetadata ?? options.decisionMetadata;
  const { metadataKey } = options.holdNames;
  const decision = addsDecision ? decisionMetadata(context, described, statuses) : undefined;
  const marks = marksOf(context);
  const withMarks = withOver(withDecision(metadata, decision, context), marks?.metadata);
  return {
    overallCode: denied ? CODE.OVER_LIMIT : CODE.OK,
    statuses,
    responseHeadersToAdd: body?.contentType === undefined ? headers : [...headers, body.contentType],
    requestHeadersToAdd: marks === undefined ? upstreamHeaders : [...upstreamHeaders, ...marks.headers],
    rawBody: body?.body,
    dynamicMetadata: withToken(withMarks, context.token, metadataKey),
  };
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

/** Returns the keys that any of the policies declares as secret. */
export function secretKeysOf(policies: PolicySet): ReadonlySet<string> {
  const all = new Set<string>();
  for (const policy of policies.domains.values()) for (const key of policy.secretKeys) all.add(key);
  return all;
}
