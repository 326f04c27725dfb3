import {
  CODE,
  type CurrentLimit,
  type DescriptorStatus,
  type HeaderValue,
  LIMIT_UNIT,
  type RateLimitResponse,
} from '../codec/messages.js';
import type { ResponseHeaders } from '../config/policy.js';
import type { TakeOutcome } from '../limiter/bucket-store.js';
import { MAX_UINT32, type Rate, reportedLimit, reportedUnit } from '../limiter/rate.js';
import type { Decision, PlannedTake } from './plan.js';

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
interface Denial {
  /** An enforced bucket is over. */
  readonly enforce: boolean;
  /** Quota buckets are in force, and every one of them is over. */
  readonly quota: boolean;
  /** The same were all phases active. */
  readonly quotaWere: boolean;
}

function denialOf(decisions: readonly Decision[]): Denial {
  let enforce = false;
  let enforcedQuotas = 0;
  let enforcedQuotasOver = 0;
  let quotas = 0;
  let quotasOver = 0;
  for (let i = 0; i < decisions.length; i++) {
    const { take, outcome } = decisions[i] as Decision;
    if (take === undefined) continue;
    // A bucket that `on_store_failure: allow` answered for is not over.
    const over = outcome?.limited === true;
    if (take.enforcement === 'enforce' && over) enforce = true;
    if (take.enforcement === 'quota') {
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
  return (
    outcome.limited && (take.enforcement === 'enforce' || (take.enforcement === 'quota' && denial.quota))
  );
}

function statusOf({ take, outcome, unlimited }: Decision): DescriptorStatus {
  if (take === undefined || outcome === undefined) return statusWithoutLimit(unlimited);
  return {
    code: outcome.limited && take.enforcement !== 'observe' ? CODE.OVER_LIMIT : CODE.OK,
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
function weight(take: PlannedTake, outcome: TakeOutcome, denial: Denial): number {
  if (denies(take, outcome, denial)) return 2;
  return wouldDeny(take, outcome, denial) ? 1 : 0;
}

/** Of two outcomes of one weight: the denying one that passes last, else the one with the fewest tokens left; the first of equals. */
function tellsMore(one: TakeOutcome, than: TakeOutcome, itsWeight: number): boolean {
  return itsWeight > 0 ? one.waitMicros > than.waitMicros : one.remaining < than.remaining;
}

/** The headers of DESIGN section 6 for one request. `wallMicros` is the time of the answer. */
function headersOf(
  decisions: readonly Decision[],
  denial: Denial,
  wanted: ResponseHeaders,
  wallMicros: number,
): readonly HeaderValue[] {
  let take: PlannedTake | undefined;
  let outcome: TakeOutcome | undefined;
  let itsWeight = -1;
  let observed = false;
  let wouldBeThrottled = false;
  for (let i = 0; i < decisions.length; i++) {
    const { take: oneTake, outcome: one } = decisions[i] as Decision;
    if (oneTake === undefined || one === undefined) continue;
    if (oneTake.enforcement === 'observe') observed = true;
    const oneWeight = weight(oneTake, one, denial);
    // What denies would deny as well.
    if (oneWeight > 0) wouldBeThrottled = true;
    if (
      outcome === undefined ||
      oneWeight > itsWeight ||
      (oneWeight === itsWeight && tellsMore(one, outcome, itsWeight))
    ) {
      take = oneTake;
      outcome = one;
      itsWeight = oneWeight;
    }
  }
  if (take === undefined || outcome === undefined) return NO_HEADERS;
  const denied = denial.enforce || denial.quota;
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

/** Builds the response from what was decided; one status per descriptor, in order. */
export function answer(
  decisions: readonly Decision[],
  wanted: ResponseHeaders | undefined,
  wallMicros: number,
): RateLimitResponse {
  const denial = denialOf(decisions);
  const statuses = new Array<DescriptorStatus>(decisions.length);
  for (let i = 0; i < decisions.length; i++) statuses[i] = statusOf(decisions[i] as Decision);
  return {
    overallCode: denial.enforce || denial.quota ? CODE.OVER_LIMIT : CODE.OK,
    statuses,
    responseHeadersToAdd:
      wanted === undefined || !(wanted.xRateLimit || wanted.retryAfter)
        ? NO_HEADERS
        : headersOf(decisions, denial, wanted, wallMicros),
    requestHeadersToAdd: NO_HEADERS,
    rawBody: undefined,
    dynamicMetadata: undefined,
  };
}

/** The answer where no limit can apply: every descriptor OK, no headers. */
export function answerWithoutLimits(descriptors: number): RateLimitResponse {
  return {
    overallCode: CODE.OK,
    statuses: Array.from({ length: descriptors }, () => STATUS_WITHOUT_LIMIT),
    responseHeadersToAdd: NO_HEADERS,
    requestHeadersToAdd: NO_HEADERS,
    rawBody: undefined,
    dynamicMetadata: undefined,
  };
}
