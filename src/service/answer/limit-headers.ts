import { CODE, type DescriptorStatus, type HeaderValue } from '../../codec/messages.js';
import { MAX_UINT32 } from '../../limiter/rate.js';
import { type Decision, isSoft } from '../plan.js';
import type { LimitHeaderNames } from './answer-options.js';

/**
 * Returns the status with the fewest hits remaining, or the first of equals. A status that denies is preferred, and the
 * last one of those. Descriptors with only soft limits come last.
 */
function described(
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
): DescriptorStatus | undefined {
  let chosen: DescriptorStatus | undefined;
  let soft: DescriptorStatus | undefined;
  let minRemaining = MAX_UINT32;
  for (let i = 0; i < statuses.length; i++) {
    const status = statuses[i] as DescriptorStatus;
    if (status.currentLimit === undefined) continue;
    const take = (decisions[i] as Decision).takes.find((one) => !isSoft(one));
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
export function limitHeadersOf(
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
  names: LimitHeaderNames,
): readonly HeaderValue[] {
  const status = described(decisions, statuses);
  if (status?.currentLimit === undefined) return [];
  const headers = [
    { key: names.limit, value: String(status.currentLimit.requestsPerUnit) },
    { key: names.remaining, value: String(status.limitRemaining) },
  ];
  const reset = status.durationUntilResetSeconds;
  // Unknown for a limit on concurrent requests.
  return reset === undefined ? headers : [...headers, { key: names.reset, value: String(reset) }];
}
