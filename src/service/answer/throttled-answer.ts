import {
  CODE,
  type DescriptorStatus,
  type HeaderValue,
  type RateLimitRequest,
  type RateLimitResponse,
} from '../../codec/messages.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { HeaderFamilies } from '../../policy/rule.js';
import { type RequestContext, UNDECODED_REQUEST } from '../plan.js';
import type { GivenUpReason } from '../record/decision-record.js';
import { STATUS_WITHOUT_LIMIT } from './answer.js';
import type { AnswerOptions } from './answer-options.js';
import { bodyWithoutLimit } from './denied-response.js';
import { dynamicMetadata, redactedKeys, withDecision } from './dynamic-metadata.js';
import { NO_HEADERS } from './response-headers.js';

/** The reason for denying a request that was not evaluated, or not completely; a value in the metadata of decisions. */
export type ThrottleReason = 'match_budget_exceeded' | GivenUpReason;

const MICROS_PER_SECOND = 1_000_000;
/** When such a request would pass is unknown, so the caller should retry after 1 s. */
const WAIT_SECONDS = 1;

const NO_ENVOY_HEADERS = { envoyAdds: { xRateLimit: false, retryAfter: false }, shadowMode: false };

const STATUS_THROTTLED: DescriptorStatus = {
  code: CODE.OVER_LIMIT,
  currentLimit: undefined,
  limitRemaining: 0,
  durationUntilResetSeconds: WAIT_SECONDS,
};

/** Returns the headers that need no limit: all except `x-ratelimit-limit` and the fields of the drafts. */
function headersWithoutLimit(
  families: HeaderFamilies | undefined,
  { envoyAdds, shadowMode }: Pick<AnswerOptions, 'envoyAdds' | 'shadowMode'>,
  wallMicros: number,
): readonly HeaderValue[] {
  if (families === undefined) return NO_HEADERS;
  const headers: HeaderValue[] = [];
  if (families.xRateLimit) {
    if (!envoyAdds.xRateLimit) {
      const reset = Math.ceil(wallMicros / MICROS_PER_SECOND) + WAIT_SECONDS;
      headers.push(
        { key: 'x-ratelimit-remaining', value: '0' },
        { key: 'x-ratelimit-reset', value: String(reset) },
      );
    }
    headers.push({ key: 'x-ratelimit-will-be-throttled', value: 'true' });
  }
  if (families.retryAfter && !shadowMode && !envoyAdds.retryAfter) {
    headers.push({ key: 'retry-after', value: String(WAIT_SECONDS) });
  }
  return headers;
}

/**
 * Returns the member `decision` of the dynamic metadata for a decision without a limit. It has the same members as one
 * with a limit.
 */
function decisionWithoutLimit(
  policy: DomainPolicy,
  reason: ThrottleReason,
  denied: boolean,
): Readonly<Record<string, unknown>> {
  return {
    code: denied ? 'OVER_LIMIT' : 'OK',
    domain: policy.domain,
    rule: '',
    name: '',
    limit: 0,
    remaining: 0,
    retry_after: denied ? WAIT_SECONDS : 0,
    phase: 'active',
    shadow_mode: false,
    would_be_throttled: true,
    reason,
  };
}

/**
 * Answers a request that is denied because its limits are unknown: OVER_LIMIT, but an overall OK in SHADOW_MODE.
 * `index` is the index of the denied descriptor; -1 for all of them.
 */
export function throttledAnswer(
  context: RequestContext,
  index: number,
  reason: ThrottleReason,
  options: AnswerOptions,
): RateLimitResponse {
  const { request, policy, wallMicros } = context;
  const denied = !options.shadowMode;
  const statuses = request.descriptors.map((_, at) =>
    index < 0 || at === index ? STATUS_THROTTLED : STATUS_WITHOUT_LIMIT,
  );
  const headers = headersWithoutLimit(policy.responseHeaders, options, wallMicros);
  const body = denied ? bodyWithoutLimit(policy.deniedResponse) : undefined;
  const metadata =
    options.dynamicMetadata && request !== UNDECODED_REQUEST
      ? dynamicMetadata(request, [], statuses, redactedKeys(context))
      : undefined;
  const addsDecision = policy.decisionMetadata ?? options.decisionMetadata;
  return {
    overallCode: denied ? CODE.OVER_LIMIT : CODE.OK,
    statuses,
    responseHeadersToAdd: body?.contentType === undefined ? headers : [...headers, body.contentType],
    // Envoy adds no headers to the upstream request itself.
    requestHeadersToAdd: headersWithoutLimit(policy.requestHeaders, NO_ENVOY_HEADERS, wallMicros),
    rawBody: body?.body,
    dynamicMetadata: withDecision(
      metadata,
      addsDecision ? decisionWithoutLimit(policy, reason, denied) : undefined,
      context,
    ),
  };
}

/** Answers a request without a decision that no enforced rule could have denied: every descriptor is OK. */
export function passingAnswer({ descriptors }: RateLimitRequest): RateLimitResponse {
  return {
    overallCode: CODE.OK,
    statuses: descriptors.map(() => STATUS_WITHOUT_LIMIT),
    responseHeadersToAdd: NO_HEADERS,
    requestHeadersToAdd: NO_HEADERS,
    rawBody: undefined,
    dynamicMetadata: undefined,
  };
}
