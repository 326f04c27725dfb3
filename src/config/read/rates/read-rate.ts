import { isCalendarUnit, suggestTimeZone, timeZoneName } from '../../../limiter/calendar.js';
import { MAX_FILL_MICROS, MAX_UINT32 } from '../../../limiter/rate.js';
import { minChargeHitsOf } from '../../../limiter/rate-algorithm.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from '../../../limiter/window-unit.js';
import { nearest } from '../../../nearest-name.js';
import { ALGORITHMS, type Algorithm } from '../../../policy/policy.js';
import type { RateSpec } from '../../../policy/rate-spec.js';
import { shownStart } from '../../../runtime/shown-address.js';
import type { FieldReader } from '../../yaml/field-reader.js';
import { readPlannedRate } from '../plans/planned-limit.js';
import type { RateDefaults, RateFields } from './rate-fields.js';
import { readConcurrency, readHold } from './read-holds.js';
import { checkedBucket, type Debt, readTokenBucket } from './read-token-bucket.js';

/** Keys that define a window, none of which a `token_bucket` can have. */
const WINDOW_KEYS = ['unit', 'requests_per_unit', 'unit_multiplier', 'calendar'] as const;

/**
 * Reads the rate of a limit: the RATE_KEYS (policy-keys.ts) of a `rate_limit` or an item of `rate_limits`. The caller
 * reads the other keys. Returns undefined if there are errors, all of which are reported.
 */
export function readRate(reader: FieldReader, defaults: RateDefaults): RateFields | undefined {
  const planned = readPlannedRate(reader, defaults, readFixedRate);
  return planned === undefined ? readFixedRate(reader, defaults) : planned.fields;
}

function readFixedRate(reader: FieldReader, defaults: RateDefaults): RateFields | undefined {
  const errorsBefore = reader.problems.errorCount;
  const hasSlots = reader.field('concurrency') !== undefined;
  const fields = hasSlots ? readConcurrency(reader) : readTimedRate(reader, defaults);
  return reader.problems.errorCount > errorsBefore ? undefined : fields;
}

function readTimedRate(reader: FieldReader, defaults: RateDefaults): RateFields | undefined {
  const rate = reader.field('token_bucket') === undefined ? readUnits(reader, defaults) : readBucket(reader);
  const hold = readHold(reader, rate);
  return rate === undefined ? undefined : { rate, hold };
}

function readBucket(reader: FieldReader): RateSpec | undefined {
  for (const key of WINDOW_KEYS) {
    if (reader.field(key) === undefined) continue;
    reader.error(key, `"${key}" cannot be combined with "token_bucket"; keep one of the two`);
  }
  if (reader.field('algorithm') !== undefined) {
    reader.error(
      'algorithm',
      '"algorithm" cannot be combined with "token_bucket", which already sets the algorithm; remove "algorithm"',
    );
  }
  if (reader.field('burst') !== undefined) {
    reader.error('burst', '"burst" cannot be combined with "token_bucket"; write the number as "max_tokens"');
  }
  const bucket = reader.mapping('token_bucket');
  const fields = bucket === undefined ? undefined : readTokenBucket(bucket);
  const maximum = readDebt(reader, MAX_UINT32, '');
  if (bucket === undefined || fields === undefined) return undefined;
  const { maxTokens, perFill, intervalMicros } = fields;
  const remedy = {
    full: 'lower max_tokens or fill_interval, or raise tokens_per_fill',
    debt: 'lower "max_debt" or the bucket\'s fill_interval, or raise tokens_per_fill',
  };
  const debt = debtOf(reader, maximum, maxTokens);
  return checkedBucket({ maxTokens, perFill, intervalMicros, ...debt }, { reader, at: bucket, remedy });
}

/** Reads a number of requests per unit: a window, or a token bucket that refills at this rate. */
function readUnits(reader: FieldReader, defaults: RateDefaults): RateSpec | undefined {
  const unit = readUnit(reader);
  const requests = reader.integer(
    'requests_per_unit',
    0,
    MAX_UINT32,
    'or replace the key with unlimited: true for no limit',
  );
  const badRequests = requests === undefined && reader.field('requests_per_unit') !== undefined;
  // Without a valid unit, the limit is incomplete, and a missing number does not mean 0.
  const isUnknown = badRequests || (requests === undefined && unit === undefined);
  const multiplier = reader.integer('unit_multiplier', 1, MAX_UINT32);
  const timeZone = readCalendar(reader, unit);
  const stated = reader.choice('algorithm', ALGORITHMS);
  const burst = reader.integer('burst', 1, MAX_UINT32);
  const hasCalendar = reader.field('calendar') !== undefined;
  if (hasCalendar && stated === 'token_bucket') {
    reader.error(
      'algorithm',
      'a token bucket refills continuously and cannot have a calendar; remove "calendar", or write ' +
        'algorithm: fixed_window',
    );
  }
  // The default algorithm of the file or the environment does not apply to calendar windows.
  const algorithm = stated ?? (hasCalendar ? 'fixed_window' : defaults.algorithm);
  const badAlgorithm = stated === undefined && reader.field('algorithm') !== undefined;
  if (reader.field('burst') !== undefined && !badAlgorithm) {
    checkBurst(reader, algorithm, requests, hasCalendar);
  }
  const limit = requests ?? 0;
  const isBucket = algorithm === 'token_bucket' && limit > 0;
  // The maximum debt of a window is unknown if its number of requests is unknown.
  const isFree = isBucket || isUnknown;
  const maximum = isFree ? readDebt(reader, MAX_UINT32, '') : readWindowDebt(reader, limit);
  if (unit === undefined) return undefined;
  if (requests === undefined && !badRequests) {
    reader.warn(
      'requests_per_unit',
      '"requests_per_unit" is missing and defaults to 0, so the rule denies every request; write 0 if this is intended',
    );
  }
  const lengthMicros = UNIT_MICROS[unit] * (multiplier ?? 1);
  if (lengthMicros > MAX_FILL_MICROS) {
    const most = Math.floor(MAX_FILL_MICROS / UNIT_MICROS[unit]);
    reader.error(
      'unit_multiplier',
      `the window is longer than 100 years; lower "unit_multiplier" to at most ${most}`,
    );
    return undefined;
  }
  if (!isBucket) {
    const window = { unit, multiplier: multiplier ?? 1, requestsPerUnit: limit, timeZone };
    return { kind: 'window', ...window, ...debtOf(reader, maximum, limit) };
  }
  const maxTokens = burst ?? limit;
  const debt = debtOf(reader, maximum, maxTokens);
  const remedy = {
    full: 'lower "burst", or raise "requests_per_unit"',
    debt: 'lower "max_debt" or "burst", or raise "requests_per_unit"',
  };
  const fields = { maxTokens, perFill: limit, intervalMicros: lengthMicros, ...debt };
  return checkedBucket(fields, { reader, at: reader, remedy });
}

function checkBurst(
  reader: FieldReader,
  algorithm: Algorithm,
  requests: number | undefined,
  hasCalendar: boolean,
): void {
  if (algorithm !== 'token_bucket' && hasCalendar) {
    reader.error(
      'burst',
      '"burst" is the capacity of a token bucket, which cannot have a calendar; remove "burst" or "calendar"',
    );
  } else if (algorithm !== 'token_bucket') {
    reader.error(
      'burst',
      '"burst" is the capacity of a token bucket, but this rule is a fixed window; add algorithm: ' +
        'token_bucket, or remove "burst"',
    );
  } else if (requests === 0) {
    reader.error('burst', 'a rule with requests_per_unit: 0 denies every request; remove "burst"');
  }
}

/**
 * Returns the time zone of `calendar`; undefined if absent or invalid. `unit` is the unit of the rule, if it is valid.
 */
function readCalendar(reader: FieldReader, unit: WindowUnit | undefined): string | undefined {
  const text = reader.text('calendar');
  if (text === undefined) return undefined;
  if (reader.field('unit_multiplier') !== undefined) {
    reader.error(
      'unit_multiplier',
      '"unit_multiplier" cannot be combined with "calendar", whose windows are always one unit long; ' +
        'keep one of the two',
    );
  }
  if (unit !== undefined && !isCalendarUnit(unit)) {
    reader.error(
      'calendar',
      `"calendar" supports days, weeks, months and years, not ${unit}s; choose another "unit", or remove "calendar"`,
    );
  }
  const name = timeZoneName(text);
  if (name === undefined) {
    const near = suggestTimeZone(text) ?? nearest(text, Intl.supportedValuesOf('timeZone'));
    const hint =
      near === undefined ? 'write a time zone such as Europe/Berlin or UTC' : `did you mean "${near}"?`;
    reader.error('calendar', `"${shownStart(text)}" is not a known time zone of the IANA database; ${hint}`);
  }
  return name;
}

/** The maximum debt as the file sets it; `default` is the capacity of the bucket or the hits of the window. */
type MaxDebt = number | 'default';

/**
 * Returns the debt of a rate. The hits of a limit with `hold` are never a charge: only settlements leave debt.
 */
function debtOf(reader: FieldReader, maximum: MaxDebt, standard: number): Debt {
  const maxDebt = maximum === 'default' ? standard : maximum;
  const minChargeHits = hasHold(reader) ? Number.POSITIVE_INFINITY : minChargeHitsOf(maxDebt);
  return { maxDebt, minChargeHits };
}

function hasHold(reader: FieldReader): boolean {
  return reader.field('hold') !== undefined;
}

/**
 * Reads `allow_debt` and `max_debt`. Returns 0 without debt, and `default` if the file sets no maximum. `most` is the
 * maximum of `max_debt`, and `why` the reason for it.
 */
function readDebt(reader: FieldReader, most: number, why: string): MaxDebt {
  if (hasHold(reader)) return readHoldDebt(reader, most, why);
  const allowed = reader.boolean('allow_debt');
  if (reader.field('max_debt') === undefined) return allowed === true ? 'default' : 0;
  if (allowed === undefined && reader.field('allow_debt') !== undefined) return 0;
  if (allowed !== true) {
    reader.error(
      'max_debt',
      '"max_debt" has no effect without allow_debt: true or "hold"; add one of them, or remove "max_debt"',
    );
    return 0;
  }
  const debt = reader.integer('max_debt', 1, MAX_UINT32);
  if (debt !== undefined && debt > most) reader.error('max_debt', why);
  return debt ?? 0;
}

/** Reads `max_debt` of a limit with `hold`; see {@link readDebt}. */
function readHoldDebt(reader: FieldReader, most: number, why: string): MaxDebt {
  if (reader.field('allow_debt') !== undefined) {
    reader.error(
      'allow_debt',
      '"allow_debt" cannot be combined with "hold", whose settlements can always leave debt, up to "max_debt"; ' +
        'remove "allow_debt"',
    );
  }
  if (reader.field('max_debt') === undefined) return 'default';
  const debt = reader.integer('max_debt', 0, MAX_UINT32);
  if (debt !== undefined && debt > most) reader.error('max_debt', why);
  return debt ?? 0;
}

/** Reads the debt of a window. The next window pays it, so it cannot exceed the hits of one window. */
function readWindowDebt(reader: FieldReader, requests: number): MaxDebt {
  const debt = readDebt(
    reader,
    Math.max(requests, 1),
    'the debt of a window must fit into the next window, so "max_debt" must be at most ' +
      `"requests_per_unit" (${requests}); lower "max_debt", or write algorithm: token_bucket`,
  );
  if (requests === 0 && hasHold(reader)) {
    reader.error(
      'hold',
      'a rule with requests_per_unit: 0 denies every request, so no request can hold anything; remove "hold", or ' +
        'raise "requests_per_unit"',
    );
  } else if (debt !== 0 && requests === 0) {
    reader.error(
      'allow_debt',
      'a rule with requests_per_unit: 0 denies every request and can never pay a debt; remove ' +
        '"allow_debt", or raise "requests_per_unit"',
    );
  }
  return debt;
}

function noLimit(path: string): string {
  return path.endsWith('rate_limit')
    ? '"rate_limit" is empty; write token_bucket, or unit and requests_per_unit, or concurrency, or unlimited: true'
    : 'the limit is missing; write token_bucket, or unit and requests_per_unit, or concurrency';
}

function readUnit(reader: FieldReader): WindowUnit | undefined {
  if (reader.name('unit') !== undefined) return reader.scalar('unit', { kind: 'unit' });
  // A wrong type is already reported.
  if (reader.field('unit') !== undefined) return undefined;
  const partly = ['requests_per_unit', 'unit_multiplier', 'calendar', 'burst'].some((key) => reader.has(key));
  const message = partly
    ? `"unit" is missing; write one of ${WINDOW_UNITS.join(', ')}`
    : noLimit(reader.path);
  reader.problems.error(reader.map.at, reader.has('unit') ? reader.pathOf('unit') : reader.path, message);
  return undefined;
}
