import { MAX_UINT32 } from '../../../limiter/rate.js';
import type { RateSpec } from '../../../policy/rate-spec.js';
import type { HoldSpec } from '../../../policy/rule.js';
import type { FieldReader } from '../field-reader.js';
import { readMapping } from '../field-values.js';
import type { FixedRate } from './rate-fields.js';

const MICROS_PER_MILLI = 1000;
const MICROS_PER_SECOND = 1_000_000;

/** Reads a `concurrency`. Returns undefined if it has errors, all of which are reported. */
export function readConcurrency(concurrency: FieldReader): FixedRate | undefined {
  const values = readMapping(concurrency, 'concurrency');
  const { max, expires_after: expiry, retry_after: retry } = values;
  if (max === undefined) return undefined;
  return {
    keys: { numbers: { max }, units: undefined, maxDebt: 0 },
    rate: { kind: 'concurrency', max },
    hold: {
      expiresAfterMillis: expiry / MICROS_PER_MILLI,
      amount: undefined,
      unknown: 'keep',
      pair: 'token',
      retryAfterSeconds: retry === undefined ? undefined : retry / MICROS_PER_SECOND,
    },
  };
}

/**
 * Reads the `hold` of a limit with this rate, undefined if the rate is invalid. Returns undefined if there are errors,
 * all of which are reported.
 */
export function readHold(hold: FieldReader, rate: RateSpec | undefined): HoldSpec | undefined {
  const errorsBefore = hold.problems.errorCount;
  const { amount, from, expires_after: expiry, unknown, pair } = readMapping(hold, 'hold');
  // Another key may be meant as the estimate, such as a misspelled "amount".
  const hasErrors = hold.problems.errorCount > errorsBefore;
  if (amount === undefined && from === undefined && !hasErrors) {
    hold.problems.error(
      hold.map.at,
      hold.path,
      '"amount" is missing; write the number of hits that each request holds, such as 5000, or ' +
        'replace "amount" with from: first_call',
    );
  }
  if (amount !== undefined) checkPossible(hold, amount, mostHits(rate));
  if (pair === 'oldest' && unknown === 'free') {
    hold.error(
      'unknown',
      '"unknown" cannot be free with pair: oldest, because an end always has a use; remove "unknown", or remove ' +
        '"pair" and let Envoy send the hold token',
    );
  }
  if (amount === undefined && from === undefined) return undefined;
  return {
    expiresAfterMillis: expiry / MICROS_PER_MILLI,
    amount,
    unknown,
    pair,
    retryAfterSeconds: undefined,
  };
}

/** Returns the largest number of hits that a limit can allow. */
function mostHits(rate: RateSpec | undefined): number {
  if (rate === undefined || rate.kind === 'concurrency') return MAX_UINT32;
  const most = rate.kind === 'window' ? rate.requestsPerUnit : rate.maxTokens;
  // A rule with requests_per_unit: 0 is reported as such.
  return most === 0 ? MAX_UINT32 : most;
}

/** Checks that a limit without holds allows a hold of `amount` hits. */
function checkPossible(hold: FieldReader, amount: number, most: number): void {
  if (amount <= most) return;
  hold.error(
    'amount',
    `"amount" is ${amount}, but the limit never allows more than ${most} hits, so it would deny every request; ` +
      `lower "amount" to at most ${most}, or raise the limit`,
  );
}
