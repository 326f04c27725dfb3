import { CODE, type DescriptorStatus, type HeaderValue, LIMIT_UNIT } from '../../codec/messages.js';
import { MAX_UINT32 } from '../../limiter/rate-algorithm.js';
import type { RuleAnswer } from '../../policy/rule.js';
import {
  type DescriptorState,
  isSoft,
  type MatchedTake,
  type RequestContext,
  skippedLimits,
} from '../request-context.js';
import type { LimitHeaderNames } from './answer-options.js';
import {
  canNeverPass,
  type DecidedTake,
  type DescribedLimit,
  deniedResetSeconds,
  familiesOf,
  hasReset,
  resetMicros,
  resetSeconds,
  retryAfterSeconds,
  WOULD_DENY,
} from './denial.js';
import { draft03Limit, MAX_LISTED, quotaFields, quotaName, wantsQuotaFields } from './quota-policy.js';

const MICROS_PER_SECOND = 1_000_000;
export const NO_HEADERS: readonly HeaderValue[] = [];

/** In seconds since the epoch. */
function resetSecond(take: DecidedTake, wallMicros: number): number {
  return take.rate.resetSecond((wallMicros + resetMicros(take)) / MICROS_PER_SECOND);
}

/**
 * Returns whether the rule may allow requests that are over its limit: it is observed, or `enforce_percent` is below
 * 100.
 */
function isObserved(take: MatchedTake): boolean {
  const { ruleEnforcement, outcome, rule } = take;
  return (
    outcome !== undefined &&
    !isSoft(take) &&
    (ruleEnforcement === 'observe' || (rule !== undefined && rule.enforcePercent < 100))
  );
}

let latestReset: HeaderValue = { key: 'x-ratelimit-reset', value: 0, encoded: null };

/** Returns `x-ratelimit-reset`, cached because most answers within a second have the same one. */
function resetHeader(second: number): HeaderValue {
  if (second !== latestReset.value) latestReset = { key: 'x-ratelimit-reset', value: second, encoded: null };
  return latestReset;
}

/** Returns the names of the limits that paid instead of earlier ones of their chain (`then`); '' without any. */
function payersOf(takes: readonly MatchedTake[]): string {
  const payers = new Set<string>();
  for (const take of takes) {
    if (skippedLimits(take).length > 0 && payers.size < MAX_LISTED) payers.add(quotaName(take));
  }
  return [...payers].join(', ');
}

/** Returns what the answers of a limit have in common, which the rule keeps. Each override has its own. */
export function answerOf({ rule, name, rate }: MatchedTake): RuleAnswer {
  const known = rule?.answer;
  if (known !== undefined) return known;
  const { reportedLimit, reportedUnit } = rate;
  const answer = {
    currentLimit: {
      name,
      requestsPerUnit: reportedLimit,
      unit: LIMIT_UNIT[reportedUnit ?? 'unknown'],
      encoded: null,
    },
    limitHeader: { key: 'x-ratelimit-limit', value: reportedLimit, encoded: null },
  };
  if (rule !== undefined) rule.answer = answer;
  return answer;
}

/** The limit, what remains, and, if it is known, the reset. */
function threeHeaders(take: DecidedTake, context: RequestContext): HeaderValue[] {
  const limit = answerOf(take).limitHeader;
  const remaining: HeaderValue = {
    key: 'x-ratelimit-remaining',
    value: take.outcome.remaining,
    encoded: undefined,
  };
  if (!hasReset(take)) return [limit, remaining];
  return [limit, remaining, resetHeader(resetSecond(take, context.wallMicros))];
}

/**
 * Returns the headers of the family `x-ratelimit`, see docs/policy/answers.md. `byEnvoy`: Envoy adds the first three
 * itself.
 */
function xRateLimit({ take, rank, takes, context }: DescribedLimit, byEnvoy: boolean): HeaderValue[] {
  const headers = byEnvoy ? [] : threeHeaders(take, context);
  // Nothing pays for a request that another limit denies.
  const payers = context.policy.hasSpills && !context.denied ? payersOf(takes) : '';
  if (payers !== '') headers.push({ key: 'x-ratelimit-spilled', value: payers });
  if (context.denied || context.options.answers.shadowMode || takes.some(isObserved)) {
    // The described limit has the highest rank, so it denies, or would deny, if any limit does.
    headers.push({ key: 'x-ratelimit-will-be-throttled', value: rank >= WOULD_DENY ? 'true' : 'false' });
  }
  return headers;
}

/**
 * Returns the headers to add to the response or, with `upstream`, to the request upstream, which Envoy does not send if
 * it denies the request. The families are those of the described rule, or else of the policy file, or else of the
 * environment. The family `ratelimit` lists every limit whose rule requests it.
 */
export function headersToAdd(
  context: RequestContext,
  statuses: readonly DescriptorStatus[],
  described: DescribedLimit | undefined,
  upstream: boolean,
): readonly HeaderValue[] {
  const { policy, states, denied } = context;
  const { limitRequestHeaders, limitHeaders, envoyAdds } = context.options.answers;
  const domainFamilies = upstream ? policy.requestHeaders : policy.responseHeaders;
  const envNames = upstream ? limitRequestHeaders : limitHeaders;
  const families =
    described === undefined ? domainFamilies : familiesOf(described.take, domainFamilies, upstream);
  if (families === undefined && envNames !== undefined) {
    return limitHeadersOf(states, statuses, envNames);
  }
  if (described === undefined) return NO_HEADERS;
  const listsQuotas = policy.listsLimits && wantsQuotaFields(described, domainFamilies, upstream);
  if (families === undefined && !listsQuotas) return NO_HEADERS;
  const { take } = described;
  // Envoy adds its own headers to responses only.
  const byEnvoy = !upstream && envoyAdds.xRateLimit;
  const headers = families?.xRateLimit === true ? xRateLimit(described, byEnvoy) : [];
  if (families?.rateLimitDraft03 === true) {
    headers.push(
      { key: 'ratelimit-limit', value: draft03Limit(described, domainFamilies, upstream) },
      { key: 'ratelimit-remaining', value: String(take.outcome.remaining) },
    );
    const reset = denied ? deniedResetSeconds(take) : resetSeconds(take);
    if (reset !== undefined) headers.push({ key: 'ratelimit-reset', value: String(reset) });
  }
  if (listsQuotas) {
    const { policies, quotas } = quotaFields(described, domainFamilies, upstream);
    headers.push({ key: 'ratelimit-policy', value: policies }, { key: 'ratelimit', value: quotas });
  }
  const addsRetryAfter = !upstream && families?.retryAfter === true && denied && !envoyAdds.retryAfter;
  const retryAfter = addsRetryAfter && !canNeverPass(take) ? retryAfterSeconds(take) : undefined;
  if (retryAfter !== undefined) headers.push({ key: 'retry-after', value: String(retryAfter) });
  return headers;
}

/**
 * Returns the status with the fewest hits remaining, or the first of equals. A status that denies is preferred, and the
 * last one of those. Descriptors with only soft limits come last.
 */
function described(
  states: readonly DescriptorState[],
  statuses: readonly DescriptorStatus[],
): DescriptorStatus | undefined {
  let chosen: DescriptorStatus | undefined;
  let soft: DescriptorStatus | undefined;
  let minRemaining = MAX_UINT32;
  for (let i = 0; i < statuses.length; i++) {
    const status = statuses[i] as DescriptorStatus;
    if (status.currentLimit === undefined) continue;
    const take = (states[i] as DescriptorState).takes.find((one) => !isSoft(one));
    if (take === undefined) {
      soft ??= status;
      continue;
    }
    const overLimit = status.code === CODE.OVER_LIMIT && !take.quota;
    if (overLimit || status.limitRemaining < minRemaining) {
      chosen = status;
      minRemaining = overLimit ? 0 : status.limitRemaining;
    }
  }
  return chosen ?? soft;
}

/**
 * Returns the headers of LIMIT_RESPONSE_HEADERS_ENABLED and LIMIT_REQUEST_HEADERS_ENABLED. Their integers describe one
 * descriptor, chosen as in the reference (envoyproxy/ratelimit, src/service/ratelimit.go). Empty if no limit applied.
 */
function limitHeadersOf(
  states: readonly DescriptorState[],
  statuses: readonly DescriptorStatus[],
  names: LimitHeaderNames,
): readonly HeaderValue[] {
  const status = described(states, statuses);
  if (status?.currentLimit === undefined) return [];
  const headers = [
    { key: names.limit, value: String(status.currentLimit.requestsPerUnit) },
    { key: names.remaining, value: String(status.limitRemaining) },
  ];
  const reset = status.durationUntilResetSeconds;
  // Unknown for a limit on concurrent requests.
  return reset === undefined ? headers : [...headers, { key: names.reset, value: String(reset) }];
}
