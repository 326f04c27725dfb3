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
import type { PlannedDescriptor, PlannedTake } from './plan.js';

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

/** One planned descriptor with what the store, or the failure policy, said of it. */
export interface Decided {
  readonly planned: PlannedDescriptor;
  /** Absent where no limit applies, or the failure policy `allow` answered. */
  readonly outcome: TakeOutcome | undefined;
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

function denialOf(decided: readonly Decided[]): Denial {
  let enforce = false;
  const quotas = { enforced: 0, enforcedOver: 0, all: 0, allOver: 0 };
  for (const { planned, outcome } of decided) {
    const { take } = planned;
    if (take === undefined) continue;
    // A bucket that `on_store_failure: allow` answered for is not over.
    const over = outcome?.limited === true ? 1 : 0;
    if (take.enforcement === 'enforce' && over === 1) enforce = true;
    if (take.enforcement === 'quota') {
      quotas.enforced++;
      quotas.enforcedOver += over;
    }
    if (take.quota) {
      quotas.all++;
      quotas.allOver += over;
    }
  }
  return {
    enforce,
    quota: quotas.enforced > 0 && quotas.enforced === quotas.enforcedOver,
    quotaWere: quotas.all > 0 && quotas.all === quotas.allOver,
  };
}

function denies(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return (
    outcome.limited && (take.enforcement === 'enforce' || (take.enforcement === 'quota' && denial.quota))
  );
}

function statusOf({ planned, outcome }: Decided): DescriptorStatus {
  if (planned.take === undefined || outcome === undefined) return statusWithoutLimit(planned.unlimited);
  return {
    code: outcome.limited && planned.take.enforcement !== 'observe' ? CODE.OVER_LIMIT : CODE.OK,
    currentLimit: currentLimit(planned.take),
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

interface Described {
  readonly take: PlannedTake;
  readonly outcome: TakeOutcome;
}

/** Whether the bucket would deny were its rule active: a quota only together with all others. */
function wouldDeny(take: PlannedTake, outcome: TakeOutcome, denial: Denial): boolean {
  return outcome.limited && (!take.quota || denial.quota || denial.quotaWere);
}

/** How strongly a decision speaks for being the one that headers describe: denying, would be denying, fits. */
function weight(one: Described, denial: Denial): number {
  if (denies(one.take, one.outcome, denial)) return 2;
  return wouldDeny(one.take, one.outcome, denial) ? 1 : 0;
}

/** The denying one that passes last, else the one with the fewest tokens left; the first of equals. */
function mostTelling(all: readonly Described[], denial: Denial): Described | undefined {
  let best: Described | undefined;
  let bestWeight = -1;
  for (const one of all) {
    const itsWeight = weight(one, denial);
    const better =
      best === undefined ||
      itsWeight > bestWeight ||
      (itsWeight === bestWeight &&
        (itsWeight > 0
          ? one.outcome.waitMicros > best.outcome.waitMicros
          : one.outcome.remaining < best.outcome.remaining));
    if (better) {
      best = one;
      bestWeight = itsWeight;
    }
  }
  return best;
}

/** The headers of DESIGN section 6 for one request. `wallMicros` is the time of the answer. */
function headersOf(
  decided: readonly Decided[],
  denial: Denial,
  wanted: ResponseHeaders,
  wallMicros: number,
): readonly HeaderValue[] {
  const all: Described[] = [];
  let observed = false;
  let wouldBeThrottled = false;
  for (const { planned, outcome } of decided) {
    if (planned.take === undefined || outcome === undefined) continue;
    all.push({ take: planned.take, outcome });
    if (planned.take.enforcement === 'observe') observed = true;
    if (wouldDeny(planned.take, outcome, denial)) wouldBeThrottled = true;
  }
  const described = mostTelling(all, denial);
  if (described === undefined) return NO_HEADERS;
  const denied = denial.enforce || denial.quota;
  const headers: HeaderValue[] = [];
  if (wanted.xRateLimit) {
    const { take, outcome } = described;
    headers.push(
      { key: 'x-ratelimit-limit', value: String(reportedLimit(take.rate)) },
      { key: 'x-ratelimit-remaining', value: String(outcome.remaining) },
      { key: 'x-ratelimit-reset', value: String(resetSecond(take, outcome, wallMicros)) },
    );
    if (denied || observed) {
      headers.push({ key: 'x-ratelimit-will-be-throttled', value: String(wouldBeThrottled) });
    }
  }
  if (wanted.retryAfter && denied) {
    const seconds = Math.max(1, Math.ceil(described.outcome.waitMicros / MICROS_PER_SECOND));
    headers.push({ key: 'retry-after', value: String(seconds) });
  }
  return headers;
}

/** Builds the response from what was decided; one status per descriptor, in order. */
export function answer(
  decided: readonly Decided[],
  wanted: ResponseHeaders | undefined,
  wallMicros: number,
): RateLimitResponse {
  const denial = denialOf(decided);
  return {
    overallCode: denial.enforce || denial.quota ? CODE.OVER_LIMIT : CODE.OK,
    statuses: decided.map(statusOf),
    responseHeadersToAdd:
      wanted === undefined || !(wanted.xRateLimit || wanted.retryAfter)
        ? NO_HEADERS
        : headersOf(decided, denial, wanted, wallMicros),
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
