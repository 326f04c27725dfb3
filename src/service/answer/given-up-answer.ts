import { CODE, type RateLimitResponse } from '../../codec/messages.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { GivenUpReason } from '../record/decision-record.js';
import type { RequestContext } from '../request-context.js';
import { bodyWithoutLimit } from './denied-response.js';
import { withDecision } from './dynamic-metadata.js';
import { NO_HEADERS } from './response-headers.js';

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
