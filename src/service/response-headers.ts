import type { DescriptorStatus, HeaderValue } from '../codec/messages.js';
import type { DomainPolicy } from '../config/policy.js';
import type { TakeOutcome } from '../limiter/bucket-store.js';
import { reportedLimit } from '../limiter/rate.js';
import type { ResponseHeaders } from '../limiter/rule.js';
import type { AnswerOptions } from './answer-options.js';
import { type Denial, rankIn, tightestOf } from './denial.js';
import { limitHeadersOf } from './limit-headers.js';
import type { Decision, PlannedTake } from './plan.js';

const MICROS_PER_SECOND = 1_000_000;
export const NO_HEADERS: readonly HeaderValue[] = [];

/**
 * The epoch second of a header. Windows end on whole seconds of the store's clock, so the nearest is exact as long as the two
 * clocks agree to half a second; a bucket's instant is rounded up.
 */
function resetSecond(take: PlannedTake, outcome: TakeOutcome, wallMicros: number): number {
  const seconds = (wallMicros + outcome.waitMicros) / MICROS_PER_SECOND;
  return take.rate.kind === 'window' ? Math.round(seconds) : Math.ceil(seconds);
}

/** Every take of a request, candidates apart. */
function liveTakes(decisions: readonly Decision[]): readonly PlannedTake[] {
  const [only] = decisions;
  if (only !== undefined && decisions.length === 1) return only.takes;
  return decisions.flatMap(({ takes }) => takes);
}

/** The headers of DESIGN section 6 for one request. `wallMicros` is the time of the answer. */
function headersOf(
  decisions: readonly Decision[],
  denial: Denial,
  wanted: ResponseHeaders,
  shadowMode: boolean,
  wallMicros: number,
): readonly HeaderValue[] {
  const takes = liveTakes(decisions);
  const rankOf = rankIn(denial);
  const described = tightestOf(takes, rankOf);
  if (described === undefined) return NO_HEADERS;
  const { take, outcome } = described;
  const denied = (denial.enforce || denial.quota) && !shadowMode;
  const headers: HeaderValue[] = wanted.xRateLimit
    ? [
        { key: 'x-ratelimit-limit', value: String(reportedLimit(take.rate)) },
        { key: 'x-ratelimit-remaining', value: String(outcome.remaining) },
        { key: 'x-ratelimit-reset', value: secondText(resetSecond(take, outcome, wallMicros)) },
      ]
    : [];
  if (wanted.xRateLimit && (denied || shadowMode || takes.some(isObserved))) {
    // The most telling one denies, or would, if any does.
    const wouldBeThrottled = rankOf(take, outcome) > 0;
    headers.push({ key: 'x-ratelimit-will-be-throttled', value: wouldBeThrottled ? 'true' : 'false' });
  }
  if (wanted.retryAfter && denied) {
    const seconds = Math.max(1, Math.ceil(outcome.waitMicros / MICROS_PER_SECOND));
    headers.push({ key: 'retry-after', value: String(seconds) });
  }
  return headers;
}

/** Whether a denial of the rule would be answered as in the monitoring phase, at least at times. */
function isObserved({ weight, outcome, rule }: PlannedTake): boolean {
  return outcome !== undefined && (weight === 'observe' || (rule !== undefined && rule.enforcePercent < 100));
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

/** The headers to add to the response, by the file's `response_headers`, else the environment's settings. */
export function responseHeaders(
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
