import { isCalendarUnit, suggestTimeZone, timeZoneName } from '../../limiter/calendar.js';
import { MAX_FILL_MICROS, MAX_UINT32 } from '../../limiter/rate-algorithm.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from '../../limiter/window-unit.js';
import { type RateKeys, type RateSpec, rateSpecOfKeys } from '../../policy/plans/plan-rate.js';
import type { HoldSpec } from '../../policy/rule.js';
import { nearest } from '../../runtime/nearest-name.js';
import { safePrefix } from '../../runtime/shown-address.js';
import type { FieldReader } from './field-reader.js';
import { type FieldValues, readFields, readMapping } from './field-values.js';
import { type FixedRate, type RateDefaults, type RateFields, readPlanRate } from './plans/plan-limit.js';
import { CONSTRAINTS, RATE_FIELDS } from './policy-fields.js';
import { readLease } from './read-leases.js';
import { readPriorities } from './read-priorities.js';

type RateValues = FieldValues<typeof RATE_FIELDS>;

/** The mapping of a limit, and the values of the keys that set its rate. */
interface Limit {
  readonly reader: FieldReader;
  readonly values: RateValues;
}

/** A rate without its classes and leases. */
type LimitFields = Omit<FixedRate, 'priorities' | 'lease'>;

/**
 * Reads the rate of a limit: the RATE_FIELDS of a `rate_limit` or an item of `rate_limits`. The caller reads the other
 * keys. Returns undefined if there are errors, all of which are reported.
 */
export function readRate(reader: FieldReader, defaults: RateDefaults): RateFields | undefined {
  const planned = readPlanRate(reader, defaults, readFixedRate);
  if (planned !== undefined) return planned.fields;
  const fields = readFixedRate(reader, defaults);
  if (fields === undefined) return undefined;
  const { rate, hold, priorities, lease } = fields;
  return { rate, hold, priorities, lease };
}

function readFixedRate(reader: FieldReader, defaults: RateDefaults): FixedRate | undefined {
  const errorsBefore = reader.problems.errorCount;
  const values = readFields(reader, RATE_FIELDS, CONSTRAINTS.rate_limit);
  const limit =
    reader.field('concurrency') === undefined
      ? readTimedRate({ reader, values }, defaults)
      : values.concurrency && readConcurrency(values.concurrency);
  const priorities = values.priorities && readPriorities(values.priorities, limit);
  const lease = values.lease && readLease(values.lease);
  return reader.problems.errorCount > errorsBefore ? undefined : limit && { ...limit, priorities, lease };
}

/** The keys of a limit, and where to report a rate that they cannot have. */
interface TimedKeys extends RateKeys {
  /** The mapping that gets the error if an empty bucket takes too long to fill. */
  readonly at: FieldReader;
  /** The remedies for such a bucket, and for one in its deepest debt. */
  readonly remedy: { readonly full: string; readonly debt: string };
}

function readTimedRate(limit: Limit, defaults: RateDefaults): LimitFields | undefined {
  const { reader, values } = limit;
  const hasBucket = reader.field('token_bucket') !== undefined;
  const read = hasBucket ? readBucket(limit) : readUnits(limit, defaults);
  const spec = read && rateSpecOfKeys(read, hasHold(reader));
  const rate = spec && (fillsInTime(reader, spec, read) ? spec : undefined);
  const hold = values.hold && readHold(values.hold, rate);
  if (read === undefined || rate === undefined) return undefined;
  const { units, maxDebt } = read;
  const numbers = { ...read.numbers, ...(hold?.amount !== undefined && { amount: hold.amount }) };
  return { rate, hold, keys: { numbers, units, maxDebt } };
}

function readBucket(limit: Limit): TimedKeys | undefined {
  const { token_bucket: bucket } = limit.values;
  const fields = bucket && readMapping(bucket, 'token_bucket');
  const maxDebt = maxDebtOf(limit, MAX_UINT32, '');
  if (bucket === undefined || fields === undefined) return undefined;
  const { max_tokens: maxTokens, tokens_per_fill: tokensPerFill, fill_interval: fillIntervalMicros } = fields;
  if (maxTokens === undefined || fillIntervalMicros === undefined) return undefined;
  const remedy = {
    full: 'lower max_tokens or fill_interval, or raise tokens_per_fill',
    debt: 'lower "max_debt" or the bucket\'s fill_interval, or raise tokens_per_fill',
  };
  const numbers = {
    max_tokens: maxTokens,
    ...(bucket.has('tokens_per_fill') && { tokens_per_fill: tokensPerFill }),
    fill_interval: fillIntervalMicros,
  };
  return { numbers, units: undefined, maxDebt, at: bucket, remedy };
}

/** Reports a token bucket that takes too long to fill. */
function fillsInTime(reader: FieldReader, rate: RateSpec, { at, remedy }: TimedKeys): boolean {
  if (rate.kind !== 'token_bucket') return true;
  const { maxTokens, tokensPerFill, fillIntervalMicros, maxDebt } = rate;
  // Fractions of a microsecond are dropped, as in tokenBucketRate.
  const fillMicros = (tokens: number): bigint =>
    (BigInt(tokens) * BigInt(fillIntervalMicros)) / BigInt(tokensPerFill);
  if (fillMicros(maxTokens) > BigInt(MAX_FILL_MICROS)) {
    const message = `an empty bucket would take more than 100 years to fill; ${remedy.full}`;
    at.problems.error(at.map.at, at.path, message);
    return false;
  }
  if (fillMicros(maxTokens + maxDebt) > BigInt(MAX_FILL_MICROS)) {
    const key = ['max_debt', 'allow_debt', 'hold'].find((one) => reader.field(one) !== undefined);
    reader.error(
      key ?? 'max_debt',
      `a bucket with the maximum debt of ${maxDebt} would take more than 100 years to fill; ${remedy.debt}`,
    );
    return false;
  }
  return true;
}

/** Reads a number of requests per unit: a window, or a token bucket that refills at this rate. */
function readUnits(limit: Limit, defaults: RateDefaults): TimedKeys | undefined {
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
  const isBucket = algorithm === 'token_bucket';
  // The maximum debt of a window is unknown if its number of requests is unknown.
  const hasAnyDebt = (isBucket && hits > 0) || isUnknown;
  const maxDebt = hasAnyDebt ? maxDebtOf(limit, MAX_UINT32, '') : maxDebtOfWindow(limit, hits);
  if (unit === undefined) return undefined;
  if (requests === undefined && !badRequests) {
    reader.warn(
      'requests_per_unit',
      '"requests_per_unit" is missing and defaults to 0, so the rule denies every request; write 0 if this is intended',
    );
  }
  if (UNIT_MICROS[unit] * multiplier > MAX_FILL_MICROS) {
    const most = Math.floor(MAX_FILL_MICROS / UNIT_MICROS[unit]);
    reader.error(
      'unit_multiplier',
      `the window is longer than 100 years; lower "unit_multiplier" to at most ${most}`,
    );
    return undefined;
  }
  const numbers = {
    unit: WINDOW_UNITS.indexOf(unit),
    requests_per_unit: hits,
    ...(burst !== undefined && { burst }),
  };
  const remedy = {
    full: 'lower "burst", or raise "requests_per_unit"',
    debt: 'lower "max_debt" or "burst", or raise "requests_per_unit"',
  };
  return { numbers, units: { multiplier, isBucket, timeZone }, maxDebt, at: reader, remedy };
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
    reader.error('calendar', `"${safePrefix(text)}" is not a known time zone of the IANA database; ${hint}`);
  }
  return name;
}

function hasHold(reader: FieldReader): boolean {
  return reader.field('hold') !== undefined;
}

/**
 * Returns the maximum debt: 0 without debt, and `capacity` if the file sets none. `most` is the maximum of `max_debt`,
 * and `why` the reason for it.
 */
function maxDebtOf({ reader, values }: Limit, most: number, why: string): RateKeys['maxDebt'] {
  const { allow_debt: isAllowed, max_debt: debt } = values;
  const mayOwe = isAllowed || hasHold(reader);
  if (reader.field('max_debt') === undefined) return mayOwe ? 'capacity' : 0;
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
function maxDebtOfWindow(limit: Limit, requests: number): RateKeys['maxDebt'] {
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

const MICROS_PER_MILLI = 1000;
const MICROS_PER_SECOND = 1_000_000;

/** Reads a `concurrency`. Returns undefined if it has errors, all of which are reported. */
function readConcurrency(concurrency: FieldReader): LimitFields | undefined {
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
function readHold(hold: FieldReader, rate: RateSpec | undefined): HoldSpec | undefined {
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
