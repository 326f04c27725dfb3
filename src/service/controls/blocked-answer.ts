import { CODE, type DescriptorStatus, type RateLimitResponse } from '../../codec/messages.js';
import type { LiveControl } from '../../limiter/control.js';
import { STATUS_WITHOUT_LIMIT } from '../answer/answer.js';
import { bodyWithoutLimit } from '../answer/denied-response.js';
import { dynamicMetadata, redactedKeys, withDecision } from '../answer/dynamic-metadata.js';
import {
  decisionWithoutLimit,
  headersWithoutLimit,
  requestHeadersWithoutLimit,
} from '../answer/throttled-answer.js';
import type { Decision, RequestContext } from '../plan.js';
import { controlMember } from './reported-control.js';

const MICROS_PER_SECOND = 1_000_000;
/** The `reason` in the metadata of decisions. */
const BLOCKED = 'blocked';

function blockOf({ control }: Decision): LiveControl | undefined {
  return control?.kind === 'block' ? control : undefined;
}

/** Returns the decision whose block ends last, because the request cannot pass before that; the first of equals. */
function longestBlocked(decisions: readonly Decision[]): Decision | undefined {
  let latest: Decision | undefined;
  for (const decision of decisions) {
    const block = blockOf(decision);
    if (block === undefined) continue;
    const latestBlock = latest === undefined ? undefined : blockOf(latest);
    if (latestBlock === undefined || block.expiresAtMicros > latestBlock.expiresAtMicros) latest = decision;
  }
  return latest;
}

/**
 * Answers a request with a blocked descriptor: OVER_LIMIT until the block ends, regardless of SHADOW_MODE, phase and
 * rule. Headers and body are those that the descriptor's rule, or the policy file, defines for denials. `nowMicros` is
 * the monotonic time of the answer.
 */
export function blockedAnswer(context: RequestContext, nowMicros: number): RateLimitResponse {
  const { request, policy, decisions, wallMicros } = context;
  const options = context.options.answers;
  const secondsLeft = ({ expiresAtMicros }: LiveControl): number =>
    Math.max(1, Math.ceil((expiresAtMicros - nowMicros) / MICROS_PER_SECOND));
  const statuses = decisions.map((decision): DescriptorStatus => {
    const block = blockOf(decision);
    if (block === undefined) return STATUS_WITHOUT_LIMIT;
    return {
      code: CODE.OVER_LIMIT,
      currentLimit: undefined,
      limitRemaining: 0,
      durationUntilResetSeconds: secondsLeft(block),
    };
  });
  const blocked = longestBlocked(decisions);
  const block = blocked === undefined ? undefined : blockOf(blocked);
  if (blocked === undefined || block === undefined) throw new Error('no descriptor is blocked');
  const [rule] = blocked.match.rules;
  const wait = secondsLeft(block);
  const enforcedOptions = { ...options, shadowMode: false };
  const families = rule?.responseHeaders ?? policy.responseHeaders;
  const headers = headersWithoutLimit(families, wait, enforcedOptions, wallMicros);
  const upstreamHeaders = requestHeadersWithoutLimit(
    rule?.requestHeaders ?? policy.requestHeaders,
    wait,
    wallMicros,
  );
  const body = bodyWithoutLimit(rule?.deniedResponse ?? policy.deniedResponse);
  const metadata = options.dynamicMetadata
    ? dynamicMetadata(request, [], statuses, redactedKeys(context))
    : undefined;
  const decision =
    (policy.decisionMetadata ?? options.decisionMetadata)
      ? Object.assign(decisionWithoutLimit(policy, BLOCKED, true, wait), controlMember(block))
      : undefined;
  return {
    overallCode: CODE.OVER_LIMIT,
    statuses,
    responseHeadersToAdd: body?.contentType === undefined ? headers : [...headers, body.contentType],
    requestHeadersToAdd: upstreamHeaders,
    rawBody: body?.body,
    dynamicMetadata: withDecision(metadata, decision, context),
  };
}
