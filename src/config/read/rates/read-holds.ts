import { MAX_UINT32 } from '../../../limiter/rate.js';
import type { ConcurrencySpec, RateSpec } from '../../../policy/rate-spec.js';
import {
  HOLD_PAIRS,
  HOLD_SOURCES,
  type HoldSource,
  type HoldSpec,
  UNKNOWN_USES,
} from '../../../policy/rule.js';
import type { FieldReader } from '../../yaml/field-reader.js';
import { keysOf } from '../policy-fields.js';

/** Default `expires_after` of `concurrency` and of `hold`, in milliseconds. */
const DEFAULT_SLOT_MILLIS = 60_000;
const DEFAULT_HOLD_MILLIS = 600_000;

const MICROS_PER_SECOND = 1_000_000;
/** Maximum `expires_after`: 7 days. */
const MAX_EXPIRY_MICROS = 168 * 3600 * MICROS_PER_SECOND;

/** Keys that define another rate, each of which excludes `concurrency`. */
const OTHER_RATES: readonly string[] = ['token_bucket', 'unit', 'requests_per_unit'];

/** Keys that a limit on concurrent requests cannot have. */
const NOT_BESIDE_CONCURRENCY = [
  ...OTHER_RATES,
  'unit_multiplier',
  'calendar',
  'algorithm',
  'burst',
  'allow_debt',
  'max_debt',
  'hold',
] as const;

/** Error messages for keys of `hold` that a `concurrency` cannot have. */
const NOT_IN_CONCURRENCY: ReadonlyMap<string, string> = new Map([
  [
    'pair',
    'a limit on concurrent requests needs hold tokens, because each lost end would otherwise occupy a slot ' +
      'permanently; remove "pair", and let Envoy send the hold token',
  ],
]);

/** Reads a `concurrency`. Returns undefined if it has errors, all of which are reported. */
export function readConcurrency(
  reader: FieldReader,
): { readonly rate: ConcurrencySpec; readonly hold: HoldSpec } | undefined {
  for (const key of NOT_BESIDE_CONCURRENCY) {
    if (reader.field(key) === undefined) continue;
    const remedy = OTHER_RATES.includes(key) ? 'keep one of the two' : `remove "${key}"`;
    reader.error(key, `"${key}" cannot be combined with "concurrency"; ${remedy}`);
  }
  const concurrency = reader.mapping('concurrency');
  if (concurrency === undefined) return undefined;
  concurrency.expectKeys(keysOf('concurrency'), undefined, NOT_IN_CONCURRENCY);
  if (concurrency.field('max') === undefined) {
    concurrency.problems.error(
      concurrency.map.at,
      concurrency.path,
      '"max" is missing; write the maximum number of concurrent requests, such as 10',
    );
  }
  const max = concurrency.integer(
    'max',
    1,
    MAX_UINT32,
    'or write requests_per_unit: 0 to deny every request',
  );
  const expiresAfterMillis = readExpiry(concurrency, DEFAULT_SLOT_MILLIS);
  const retryAfterSeconds = readRetryAfter(concurrency);
  if (max === undefined || expiresAfterMillis === undefined) return undefined;
  return {
    rate: { kind: 'concurrency', max },
    hold: {
      expiresAfterMillis,
      amount: undefined,
      unknown: 'keep',
      pair: 'token',
      retryAfterSeconds,
    },
  };
}

/**
 * Reads the `hold` of a limit with this rate, undefined if the rate is invalid. Returns undefined if there are errors,
 * all of which are reported.
 */
export function readHold(reader: FieldReader, rate: RateSpec | undefined): HoldSpec | undefined {
  const hold = reader.mapping('hold');
  if (hold === undefined) return undefined;
  const errorsBefore = hold.problems.errorCount;
  hold.expectKeys(keysOf('hold'));
  // Another key may be meant as the estimate, such as a misspelled "amount".
  const hasOtherKeys = hold.problems.errorCount > errorsBefore;
  const amount = hold.integer('amount', 1, MAX_UINT32);
  const from = hold.choice('from', HOLD_SOURCES);
  const hasAmount = hold.field('amount') !== undefined;
  const hasSource = hold.field('from') !== undefined;
  if (hasAmount && hasSource) {
    hold.error('from', '"from" cannot be combined with "amount"; keep one of the two');
  } else if (!hasAmount && !hasSource && !hasOtherKeys) {
    hold.problems.error(
      hold.map.at,
      hold.path,
      '"amount" is missing; write the number of hits that each request holds, such as 5000, or ' +
        'replace "amount" with from: first_call',
    );
  }
  if (amount !== undefined) checkPossible(hold, amount, mostHits(rate));
  const expiresAfterMillis = readExpiry(hold, DEFAULT_HOLD_MILLIS);
  const unknown = hold.choice('unknown', UNKNOWN_USES) ?? 'keep';
  const pair = hold.choice('pair', HOLD_PAIRS) ?? 'token';
  if (pair === 'oldest') checkOldest(hold, from, unknown);
  const hasEstimate = amount !== undefined || from !== undefined;
  if (expiresAfterMillis === undefined || !hasEstimate) return undefined;
  return { expiresAfterMillis, amount, unknown, pair, retryAfterSeconds: undefined };
}

/** Checks that the settings of a hold can be combined with `pair: oldest`. */
function checkOldest(hold: FieldReader, from: HoldSource | undefined, unknown: HoldSpec['unknown']): void {
  if (from !== undefined) {
    hold.error(
      'from',
      '"from" cannot be combined with pair: oldest, because a start then has 0 hits; write the number of hits that ' +
        'each request holds as "amount"',
    );
  }
  if (unknown === 'free') {
    hold.error(
      'unknown',
      '"unknown" cannot be free with pair: oldest, because an end always has a use; remove "unknown", or remove ' +
        '"pair" and let Envoy send the hold token',
    );
  }
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

/** Reads `expires_after`. Returns milliseconds, or undefined if it is invalid. */
function readExpiry(reader: FieldReader, defaultMillis: number): number | undefined {
  if (reader.field('expires_after') === undefined) return defaultMillis;
  const micros = reader.scalar('expires_after', {
    kind: 'duration',
    min: 1000,
    max: MAX_EXPIRY_MICROS,
    step: 1000,
  });
  return micros === undefined ? undefined : micros / 1000;
}

/** Reads `retry_after`. Returns seconds, or undefined if it is absent or invalid. */
function readRetryAfter(reader: FieldReader): number | undefined {
  const micros = reader.scalar('retry_after', {
    kind: 'duration',
    min: MICROS_PER_SECOND,
    max: MAX_EXPIRY_MICROS,
    step: MICROS_PER_SECOND,
  });
  return micros === undefined ? undefined : micros / MICROS_PER_SECOND;
}
