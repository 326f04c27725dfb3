import type { DescriptorStatus, HeaderValue } from '../../codec/messages.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { HeaderFamilies } from '../../policy/rule.js';
import type { Decision, PlannedTake } from '../plan.js';
import type { AnswerOptions } from './answer-options.js';
import { canNeverPass, type DecidedTake, resetMicros, WOULD_DENY } from './denial.js';
import { type DescribedLimit, resetSeconds, retryAfterSeconds } from './described-limit.js';
import { limitHeadersOf } from './limit-headers.js';
import { draft03Limit, familiesOf, quotaFields } from './quota-policy.js';

const MICROS_PER_SECOND = 1_000_000;
export const NO_HEADERS: readonly HeaderValue[] = [];

/** The epoch second of a header. */
function resetSecond(take: DecidedTake, wallMicros: number): number {
  return take.rate.resetSecond((wallMicros + resetMicros(take)) / MICROS_PER_SECOND);
}

/** Whether a denial of the rule would be answered as in the monitoring phase, at least at times. */
function isObserved({ ruleEnforcement, outcome, rule }: PlannedTake): boolean {
  return (
    outcome !== undefined &&
    (ruleEnforcement === 'observe' || (rule !== undefined && rule.enforcePercent < 100))
  );
}

let latestSecond = 0;
let latestSecondText = '0';

/** The second as text; most answers of a second name the same one. */
function secondText(second: number): string {
  if (second !== latestSecond) {
    latestSecondText = String(second);
    latestSecond = second;
  }
  return latestSecondText;
}

/** The family `x-ratelimit`, as docs/policy/answers.md describes it. `byEnvoy`: Envoy adds the first three itself. */
function xRateLimit(
  { take, rank, takes }: DescribedLimit,
  { shadowMode }: AnswerOptions,
  byEnvoy: boolean,
  denied: boolean,
  wallMicros: number,
): HeaderValue[] {
  const { outcome } = take;
  const headers: HeaderValue[] = byEnvoy
    ? []
    : [
        { key: 'x-ratelimit-limit', value: String(take.rate.reportedLimit) },
        { key: 'x-ratelimit-remaining', value: String(outcome.remaining) },
        { key: 'x-ratelimit-reset', value: secondText(resetSecond(take, wallMicros)) },
      ];
  if (denied || shadowMode || takes.some(isObserved)) {
    // The most telling one denies, or would, if any does.
    headers.push({ key: 'x-ratelimit-will-be-throttled', value: rank >= WOULD_DENY ? 'true' : 'false' });
  }
  return headers;
}

/**
 * The headers of all families but `retry-after`: those that `wanted` has, and the family `ratelimit` for every limit
 * whose rule, else the file, asks for it. `upstream` is for the request instead of the response.
 */
function familyHeaders(
  described: DescribedLimit,
  wanted: HeaderFamilies | undefined,
  ofFile: HeaderFamilies | undefined,
  upstream: boolean,
  options: AnswerOptions,
  denied: boolean,
  wallMicros: number,
): HeaderValue[] {
  const { take } = described;
  // Envoy adds its own headers to responses only.
  const byEnvoy = !upstream && options.envoyAdds.xRateLimit;
  const headers =
    wanted?.xRateLimit === true ? xRateLimit(described, options, byEnvoy, denied, wallMicros) : [];
  if (wanted?.rateLimitDraft03 === true) {
    headers.push(
      { key: 'ratelimit-limit', value: draft03Limit(described, ofFile, upstream, wallMicros) },
      { key: 'ratelimit-remaining', value: String(take.outcome.remaining) },
      { key: 'ratelimit-reset', value: String(denied ? retryAfterSeconds(take) : resetSeconds(take)) },
    );
  }
  const fields = quotaFields(described, ofFile, upstream, wallMicros);
  if (fields !== undefined) {
    headers.push(
      { key: 'ratelimit-policy', value: fields.policies },
      { key: 'ratelimit', value: fields.quotas },
    );
  }
  return headers;
}

/**
 * The headers to add to the response: the families that the rule described asks for, else the file; where neither says,
 * those of the environment. The family `ratelimit` lists every limit whose rule asks for it. `wallMicros` is the time
 * of the answer.
 */
export function responseHeaders(
  policy: DomainPolicy,
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
  described: DescribedLimit | undefined,
  options: AnswerOptions,
  denied: boolean,
  wallMicros: number,
): readonly HeaderValue[] {
  const ofFile = policy.responseHeaders;
  const wanted = described === undefined ? ofFile : familiesOf(described.take, ofFile, false);
  if (wanted === undefined && options.limitHeaders !== undefined) {
    return limitHeadersOf(decisions, statuses, options.limitHeaders);
  }
  if (described === undefined) return NO_HEADERS;
  const { take } = described;
  const headers = familyHeaders(described, wanted, ofFile, false, options, denied, wallMicros);
  if (wanted?.retryAfter === true && denied && !options.envoyAdds.retryAfter && !canNeverPass(take)) {
    headers.push({ key: 'retry-after', value: String(retryAfterSeconds(take)) });
  }
  return headers;
}

/** The same for the request that goes upstream; Envoy ignores them where it denies the request. */
export function requestHeaders(
  policy: DomainPolicy,
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
  described: DescribedLimit | undefined,
  options: AnswerOptions,
  denied: boolean,
  wallMicros: number,
): readonly HeaderValue[] {
  const ofFile = policy.requestHeaders;
  const wanted = described === undefined ? ofFile : familiesOf(described.take, ofFile, true);
  if (wanted === undefined && options.limitRequestHeaders !== undefined) {
    return limitHeadersOf(decisions, statuses, options.limitRequestHeaders);
  }
  if (described === undefined) return NO_HEADERS;
  return familyHeaders(described, wanted, ofFile, true, options, denied, wallMicros);
}
