import { isCalendarUnit, suggestTimeZone, timeZoneName } from '../../../limiter/calendar.js';
import { MAX_FILL_MICROS, MAX_UINT32 } from '../../../limiter/rate.js';
import { minChargeHitsOf } from '../../../limiter/rate-algorithm.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from '../../../limiter/window-unit.js';
import { nearest } from '../../../nearest-name.js';
import type { RateSpec, TokenBucketSpec } from '../../../policy/rate-spec.js';
import { shownStart } from '../../../runtime/shown-address.js';
import type { FieldReader } from '../../yaml/field-reader.js';
import { type FieldValues, readFields, readMapping } from '../field-values.js';
import { readPlannedRate } from '../plans/planned-limit.js';
import { CONSTRAINTS, RATE_FIELDS } from '../policy-fields.js';
import type { RateDefaults, RateFields } from './rate-fields.js';
import { readConcurrency, readHold } from './read-holds.js';

type RateValues = FieldValues<typeof RATE_FIELDS>;

/** The mapping of a limit, and the values of the keys that set its rate. */
interface Limit {
  readonly reader: FieldReader;
  readonly values: RateValues;
}

/**
 * Reads the rate of a limit: the RATE_FIELDS of a `rate_limit` or an item of `rate_limits`. The caller reads the other
 * keys. Returns undefined if there are errors, all of which are reported.
 */
export function readRate(reader: FieldReader, defaults: RateDefaults): RateFields | undefined {
  const planned = readPlannedRate(reader, defaults, readFixedRate);
  return planned === undefined ? readFixedRate(reader, defaults) : planned.fields;
}

function readFixedRate(reader: FieldReader, defaults: RateDefaults): RateFields | undefined {
  const errorsBefore = reader.problems.errorCount;
  const values = readFields(reader, RATE_FIELDS, CONSTRAINTS.rate_limit);
  const fields =
    reader.field('concurrency') === undefined
      ? readTimedRate({ reader, values }, defaults)
      : values.concurrency && readConcurrency(values.concurrency);
  return reader.problems.errorCount > errorsBefore ? undefined : fields;
}

function readTimedRate(limit: Limit, defaults: RateDefaults): RateFields | undefined {
  const { hold: holdReader } = limit.values;
  const hasBucket = limit.reader.field('token_bucket') !== undefined;
  const rate = hasBucket ? readBucket(limit) : readUnits(limit, defaults);
  const hold = holdReader && readHold(holdReader, rate);
  return rate === undefined ? undefined : { rate, hold };
}

function readBucket(limit: Limit): RateSpec | undefined {
  const { reader, values } = limit;
  const { token_bucket: bucket } = values;
  const fields = bucket && readMapping(bucket, 'token_bucket');
  const maximum = maxDebtOf(limit, MAX_UINT32, '');
  if (bucket === undefined || fields === undefined) return undefined;
  const { max_tokens: maxTokens, tokens_per_fill: tokensPerFill, fill_interval: fillIntervalMicros } = fields;
  if (maxTokens === undefined || fillIntervalMicros === undefined) return undefined;
  const remedy = {
    full: 'lower max_tokens or fill_interval, or raise tokens_per_fill',
    debt: 'lower "max_debt" or the bucket\'s fill_interval, or raise tokens_per_fill',
  };
  const numbers = { maxTokens, tokensPerFill, fillIntervalMicros, ...debtOf(limit, maximum, maxTokens) };
  return checkedBucket({ kind: 'token_bucket', ...numbers }, { reader, at: bucket, remedy });
}

/**
 * The field that gets the error if a bucket takes too long to fill, and the remedies: for an empty bucket, and for one
 * in its deepest debt.
 */
interface Place {
  readonly reader: FieldReader;
  readonly at: FieldReader;
  readonly remedy: { readonly full: string; readonly debt: string };
}

/** Returns the rate of a token bucket, unless the bucket takes too long to fill, which is reported. */
function checkedBucket(spec: TokenBucketSpec, { reader, at, remedy }: Place): TokenBucketSpec | undefined {
  const { maxTokens, tokensPerFill, fillIntervalMicros, maxDebt } = spec;
  // Fractions of a microsecond are dropped, as in tokenBucketRate.
  const fillMicros = (tokens: number): bigint =>
    (BigInt(tokens) * BigInt(fillIntervalMicros)) / BigInt(tokensPerFill);
  if (fillMicros(maxTokens) > BigInt(MAX_FILL_MICROS)) {
    const message = `an empty bucket would take more than 100 years to fill; ${remedy.full}`;
    at.problems.error(at.map.at, at.path, message);
    return undefined;
  }
  if (fillMicros(maxTokens + maxDebt) > BigInt(MAX_FILL_MICROS)) {
    const key = ['max_debt', 'allow_debt', 'hold'].find((one) => reader.field(one) !== undefined);
    reader.error(
      key ?? 'max_debt',
      `a bucket with the maximum debt of ${maxDebt} would take more than 100 years to fill; ${remedy.debt}`,
    );
    return undefined;
  }
  return spec;
}

/** Reads a number of requests per unit: a window, or a token bucket that refills at this rate. */
function readUnits(limit: Limit, defaults: RateDefaults): RateSpec | undefined {
  const { reader, values } = limit;
  const { unit, requests_per_unit: requests, unit_multiplier: multiplier, burst } = values;
  if (reader.field('unit') === undefined) noUnit(reader);
  const badRequests = reader.isBad('requests_per_unit');
  // Without a valid unit, the limit is incomplete, and a missing number does not mean 0.
  const isUnknown = badRequests || (requests === undefined && unit === undefined);
  const hasCalendar = reader.field('calendar') !== undefined;
  const timeZone = values.calendar === undefined ? undefined : readCalendar(reader, values.calendar, unit);
  if (hasCalendar && values.algorithm === 'token_bucket') {
    reader.error(
      'algorithm',
      'a token bucket refills continuously and cannot have a calendar; remove "calendar", or write ' +
        'algorithm: fixed_window',
    );
  }
  // The default algorithm of the file or the environment does not apply to calendar windows.
  const algorithm = values.algorithm ?? (hasCalendar ? 'fixed_window' : defaults.algorithm);
  if (reader.field('burst') !== undefined && !reader.isBad('algorithm') && !hasCalendar) {
    checkBurst(reader, algorithm === 'token_bucket', requests);
  }
  const hits = requests ?? 0;
  const isBucket = algorithm === 'token_bucket' && hits > 0;
  // The maximum debt of a window is unknown if its number of requests is unknown.
  const maximum = isBucket || isUnknown ? maxDebtOf(limit, MAX_UINT32, '') : maxDebtOfWindow(limit, hits);
  if (unit === undefined) return undefined;
  if (requests === undefined && !badRequests) {
    reader.warn(
      'requests_per_unit',
      '"requests_per_unit" is missing and defaults to 0, so the rule denies every request; write 0 if this is intended',
    );
  }
  const lengthMicros = UNIT_MICROS[unit] * multiplier;
  if (lengthMicros > MAX_FILL_MICROS) {
    const most = Math.floor(MAX_FILL_MICROS / UNIT_MICROS[unit]);
    reader.error(
      'unit_multiplier',
      `the window is longer than 100 years; lower "unit_multiplier" to at most ${most}`,
    );
    return undefined;
  }
  if (!isBucket) {
    return {
      kind: 'window',
      unit,
      multiplier,
      requestsPerUnit: hits,
      timeZone,
      ...debtOf(limit, maximum, hits),
    };
  }
  const maxTokens = burst ?? hits;
  const remedy = {
    full: 'lower "burst", or raise "requests_per_unit"',
    debt: 'lower "max_debt" or "burst", or raise "requests_per_unit"',
  };
  const numbers = { maxTokens, tokensPerFill: hits, fillIntervalMicros: lengthMicros };
  const debt = debtOf(limit, maximum, maxTokens);
  return checkedBucket({ kind: 'token_bucket', ...numbers, ...debt }, { reader, at: reader, remedy });
}

/** Reports a limit without `unit`. */
function noUnit(reader: FieldReader): void {
  const partly = ['requests_per_unit', 'unit_multiplier', 'calendar', 'burst'].some((key) => reader.has(key));
  const what = 'write token_bucket, or unit and requests_per_unit, or concurrency';
  const message = partly
    ? `"unit" is missing; write one of ${WINDOW_UNITS.join(', ')}`
    : reader.path.endsWith('rate_limit')
      ? `"rate_limit" is empty; ${what}, or unlimited: true`
      : `the limit is missing; ${what}`;
  reader.problems.error(reader.map.at, reader.has('unit') ? reader.pathOf('unit') : reader.path, message);
}

function checkBurst(reader: FieldReader, isBucket: boolean, requests: number | undefined): void {
  if (!isBucket) {
    reader.error(
      'burst',
      '"burst" is the capacity of a token bucket, but this rule is a fixed window; add algorithm: ' +
        'token_bucket, or remove "burst"',
    );
  } else if (requests === 0) {
    reader.error('burst', 'a rule with requests_per_unit: 0 denies every request; remove "burst"');
  }
}

/** Returns the time zone of `calendar`; undefined if it is invalid. `unit` is the unit of the rule, if it is valid. */
function readCalendar(reader: FieldReader, text: string, unit: WindowUnit | undefined): string | undefined {
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
function debtOf(
  { reader }: Limit,
  maximum: MaxDebt,
  standard: number,
): Pick<TokenBucketSpec, 'maxDebt' | 'minChargeHits'> {
  const maxDebt = maximum === 'default' ? standard : maximum;
  const minChargeHits = hasHold(reader) ? Number.POSITIVE_INFINITY : minChargeHitsOf(maxDebt);
  return { maxDebt, minChargeHits };
}

function hasHold(reader: FieldReader): boolean {
  return reader.field('hold') !== undefined;
}

/**
 * Returns the maximum debt: 0 without debt, and `default` if the file sets none. `most` is the maximum of `max_debt`,
 * and `why` the reason for it.
 */
function maxDebtOf({ reader, values }: Limit, most: number, why: string): MaxDebt {
  const { allow_debt: isAllowed, max_debt: debt } = values;
  const mayOwe = isAllowed || hasHold(reader);
  if (reader.field('max_debt') === undefined) return mayOwe ? 'default' : 0;
  if (reader.isBad('allow_debt')) return 0;
  if (!mayOwe) {
    reader.error(
      'max_debt',
      '"max_debt" has no effect without allow_debt: true or "hold"; add one of them, or remove "max_debt"',
    );
  } else if (debt === 0 && !hasHold(reader)) {
    reader.error('max_debt', `"max_debt" is 0; write a whole number from 1 to ${MAX_UINT32}`);
  } else if (debt !== undefined && debt > most) {
    reader.error('max_debt', why);
  }
  return debt ?? 0;
}

/** Returns the maximum debt of a window. The next window pays it, so it cannot exceed the hits of one window. */
function maxDebtOfWindow(limit: Limit, requests: number): MaxDebt {
  const { reader } = limit;
  const debt = maxDebtOf(
    limit,
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
