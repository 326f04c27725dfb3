import {
  CODE,
  type CurrentLimit,
  type DescriptorStatus,
  type HeaderValue,
  LIMIT_UNIT,
  type RateLimitRequest,
  type RateLimitResponse,
} from '../codec/messages.js';
import type { DomainPolicy, PolicySet, ResponseHeaders } from '../config/policy.js';
import type { TakeOutcome } from '../limiter/bucket-store.js';
import { MAX_UINT32, type Rate, reportedLimit, reportedUnit } from '../limiter/rate.js';
import type { AnswerOptions } from './answer-options.js';
import { dynamicMetadata } from './dynamic-metadata.js';
import { limitHeadersOf } from './limit-headers.js';
import { type Decision, isPassingQuota, type PlannedTake } from './plan.js';

const MICROS_PER_SECOND = 1_000_000;
const NO_HEADERS: readonly HeaderValue[] = [];

const STATUS_WITHOUT_LIMIT: DescriptorStatus = {
  code: CODE.OK,
  currentLimit: undefined,
  limitRemaining: 0,
  durationUntilResetSeconds: undefined,
};

/** As the reference answers for `unlimited: true`: no limit, and as much left as the field can say. */
const STATUS_UNLIMITED: DescriptorStatus = { ...STATUS_WITHOUT_LIMIT, limitRemaining: MAX_UINT32 };

/** Status for a descriptor that no limit concerns. */
export function statusWithoutLimit(unlimited: boolean): DescriptorStatus {
  return unlimited ? STATUS_UNLIMITED : STATUS_WITHOUT_LIMIT;
}

const unitOfRate = new WeakMap<Rate, CurrentLimit['unit']>();

function currentLimit(take: PlannedTake): CurrentLimit {
  let unit = unitOfRate.get(take.rate);
  if (unit === undefined) {
    unit = LIMIT_UNIT[reportedUnit(take.rate) ?? 'unknown'];
    unitOfRate.set(take.rate, unit);
  }
  return { name: take.name, requestsPerUnit: reportedLimit(take.rate), unit };
}

/** What denies this request. */
export interface Denial {
  /** An enforced bucket is over. */
  readonly enforce: boolean;
  /** Quota buckets are in force, and every one of them is over. */
  readonly quota: boolean;
  /** The same were all phases active. */
  readonly quotaWere: boolean;
}

/** What denies, or but for SHADOW_MODE would. */
export function denialOf(decisions: readonly Decision[], quotaMode: boolean): Denial {
  let enforce = false;
  let enforcedQuotas = 0;
  let enforcedQuotasOver = 0;
  let quotas = 0;
  let quotasOver = 0;
  for (let i = 0; i < decisions.length; i++) {
    const decision = decisions[i] as Decision;
    const { take, outcome } = decision;
    if (isPassingQuota(decision, quotaMode)) {
      enforcedQuotas++;
      if (take === undefined) quotas++;
    }
    if (take === undefined) continue;
    // A bucket that `on_store_failure: allow` answered for is not over.
    const over = outcome?.limited === true;
    if (take.weight === 'enforce' && over) enforce = true;
    if (take.weight === 'quota') {
      enforcedQuotas++;
      if (over) enforcedQuotasOver++;
    }
    if (take.quota) {
      quotas++;
      if (over) quotasOver++;
    }
  }
  return {
    enforce,
    quota: enforcedQuotas > 0 && enforcedQuotas === enforcedQuotasOver,
    quotaWere: quotas > 0 && quotas === quotasOver,
  };
}

function denies(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return outcome.limited && (take.weight === 'enforce' || (take.weight === 'quota' && denial.quota));
}

function statusOf({ take, outcome, unlimited }: Decision): DescriptorStatus {
  if (take === undefined || outcome === undefined) return statusWithoutLimit(unlimited);
  return {
    code: outcome.limited && take.weight !== 'observe' ? CODE.OVER_LIMIT : CODE.OK,
    currentLimit: currentLimit(take),
    limitRemaining: Math.min(outcome.remaining, MAX_UINT32),
    durationUntilResetSeconds: Math.ceil(outcome.waitMicros / MICROS_PER_SECOND),
  };
}

/**
 * The epoch second of a header. Windows end on whole seconds of the store's clock, so the nearest is exact as long as the two
 * clocks agree to half a second; a bucket's instant is rounded up.
 */
function resetSecond(take: PlannedTake, outcome: TakeOutcome, wallMicros: number): number {
  const seconds = (wallMicros + outcome.waitMicros) / MICROS_PER_SECOND;
  return take.rate.kind === 'window' ? Math.round(seconds) : Math.ceil(seconds);
}

/** Whether the bucket would deny were its rule active: a quota only together with all others. */
function wouldDeny(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return outcome.limited && (!take.quota || denial.quota || denial.quotaWere);
}

/** How strongly a decision speaks for being the one that headers describe: denying, would be denying, fits. */
function rank(take: PlannedTake, outcome: TakeOutcome, denial: Denial): number {
  if (denies(take, outcome, denial)) return 2;
  return wouldDeny(take, outcome, denial) ? 1 : 0;
}

/** Of two outcomes of one rank: the denying one that passes last, else the one with the fewest tokens left; the first of equals. */
function tellsMore(one: TakeOutcome, than: TakeOutcome, itsRank: number): boolean {
  return itsRank > 0 ? one.waitMicros > than.waitMicros : one.remaining < than.remaining;
}

/** The headers of DESIGN section 6 for one request. `wallMicros` is the time of the answer. */
function headersOf(
  decisions: readonly Decision[],
  denial: Denial,
  wanted: ResponseHeaders,
  shadowMode: boolean,
  wallMicros: number,
): readonly HeaderValue[] {
  let take: PlannedTake | undefined;
  let outcome: TakeOutcome | undefined;
  let itsRank = -1;
  let observed = shadowMode;
  let wouldBeThrottled = false;
  for (let i = 0; i < decisions.length; i++) {
    const { take: oneTake, outcome: one } = decisions[i] as Decision;
    if (oneTake === undefined || one === undefined) continue;
    if (oneTake.weight === 'observe') observed = true;
    const oneRank = rank(oneTake, one, denial);
    // What denies would deny as well.
    if (oneRank > 0) wouldBeThrottled = true;
    if (
      outcome === undefined ||
      oneRank > itsRank ||
      (oneRank === itsRank && tellsMore(one, outcome, itsRank))
    ) {
      take = oneTake;
      outcome = one;
      itsRank = oneRank;
    }
  }
  if (take === undefined || outcome === undefined) return NO_HEADERS;
  const denied = (denial.enforce || denial.quota) && !shadowMode;
  const headers: HeaderValue[] = wanted.xRateLimit
    ? [
        { key: 'x-ratelimit-limit', value: String(reportedLimit(take.rate)) },
        { key: 'x-ratelimit-remaining', value: String(outcome.remaining) },
        { key: 'x-ratelimit-reset', value: secondText(resetSecond(take, outcome, wallMicros)) },
      ]
    : [];
  if (wanted.xRateLimit && (denied || observed)) {
    headers.push({ key: 'x-ratelimit-will-be-throttled', value: wouldBeThrottled ? 'true' : 'false' });
  }
  if (wanted.retryAfter && denied) {
    const seconds = Math.max(1, Math.ceil(outcome.waitMicros / MICROS_PER_SECOND));
    headers.push({ key: 'retry-after', value: String(seconds) });
  }
  return headers;
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

function responseHeaders(
  policy: DomainPolicy,
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
  denial: Denial,
  options: AnswerOptions,
  wallMicros: number,
): readonly HeaderValue[] {
  const wanted = policy.responseHeaders;
  if (wanted === undefined) {
    return options.limitHeaders === undefined
      ? NO_HEADERS
      : limitHeadersOf(decisions, statuses, options.limitHeaders);
  }
  if (!(wanted.xRateLimit || wanted.retryAfter)) return NO_HEADERS;
  return headersOf(decisions, denial, wanted, options.shadowMode, wallMicros);
}

/** Builds the response from what was decided; one status per descriptor, in order. `wallMicros` is the time of the answer. */
export function answer(
  request: RateLimitRequest,
  policy: DomainPolicy,
  decisions: readonly Decision[],
  denial: Denial,
  options: AnswerOptions,
  wallMicros: number,
): RateLimitResponse {
  const statuses = new Array<DescriptorStatus>(decisions.length);
  for (let i = 0; i < decisions.length; i++) statuses[i] = statusOf(decisions[i] as Decision);
  return {
    overallCode: (denial.enforce || denial.quota) && !options.shadowMode ? CODE.OVER_LIMIT : CODE.OK,
    statuses,
    responseHeadersToAdd: responseHeaders(policy, decisions, statuses, denial, options, wallMicros),
    requestHeadersToAdd: NO_HEADERS,
    rawBody: undefined,
    dynamicMetadata: options.dynamicMetadata
      ? dynamicMetadata(request, decisions, statuses, policy.secretKeys)
      : undefined,
  };
}

/** The answer to a request of a domain without policy: every descriptor OK, no headers. */
export function answerWithoutLimits(
  request: RateLimitRequest,
  policies: PolicySet,
  options: AnswerOptions,
): RateLimitResponse {
  const statuses = request.descriptors.map(() => STATUS_WITHOUT_LIMIT);
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

/** What any policy takes for a secret. */
export function secretKeysOf(policies: PolicySet): ReadonlySet<string> {
  const all = new Set<string>();
  for (const policy of policies.domains.values()) for (const key of policy.secretKeys) all.add(key);
  return all;
}
