import {
  MAX_FILL_MICROS,
  MAX_UINT32,
  type Rate,
  tokenBucketRate,
  WINDOW_UNITS,
  type WindowUnit,
  windowRate,
} from '../limiter/rate.js';
import {
  type DeniedResponse,
  type ResponseHeaders,
  STORE_FAILURE_POLICIES,
  type StoreFailurePolicy,
} from '../limiter/rule.js';
import { closest, type FieldReader, type Located } from './field-reader.js';
import { parseGoDuration } from './go-duration.js';
import { MISPLACED_KEYS, RATE_LIMIT_KEYS } from './policy-keys.js';
import { readDeniedResponse, readResponseHeaders } from './read-response.js';

/** A `rate_limit` as it stands in the file. */
export interface RateLimitFields {
  readonly name: string;
  /** Absent for `unlimited: true`. */
  readonly rate: Rate | undefined;
  readonly replaces: readonly Located<string>[];
  /** Absent: the file's counts. */
  readonly onStoreFailure: StoreFailurePolicy | undefined;
  readonly responseHeaders: ResponseHeaders | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
}

/** Smallest `fill_interval`, in microseconds. */
const MIN_FILL_INTERVAL_MICROS = 1000;

/** Reads a `rate_limit`. Undefined when it holds an error; all of them are reported. */
export function readRateLimit(reader: FieldReader): RateLimitFields | undefined {
  const errorsBefore = reader.problems.errors.length;
  reader.expectKeys(RATE_LIMIT_KEYS, MISPLACED_KEYS);
  const name = reader.name('name') ?? '';
  const replaces = readReplaces(reader, name);
  const onStoreFailure = reader.choice('on_store_failure', STORE_FAILURE_POLICIES);
  const responseHeaders = readResponseHeaders(reader);
  const deniedResponse = readDeniedResponse(reader);
  const unlimited = reader.boolean('unlimited');
  const badUnlimited = unlimited === undefined && reader.field('unlimited') !== undefined;
  const rate = unlimited === true ? readUnlimited(reader) : badUnlimited ? undefined : readRate(reader);
  if (reader.problems.errors.length > errorsBefore) return undefined;
  return { name, rate, replaces, onStoreFailure, responseHeaders, deniedResponse };
}

function readReplaces(reader: FieldReader, name: string): readonly Located<string>[] {
  const replaces: Located<string>[] = [];
  for (const item of reader.mappings('replaces', 'mappings with a name')) {
    item.expectKeys(['name'], MISPLACED_KEYS);
    const replaced = item.name('name') ?? '';
    if (replaced === '') {
      item.error('name', 'an item of "replaces" has no name; name the rule to replace or remove the item');
    } else if (replaced === name) {
      item.error('name', `"replaces" holds the rule's own name "${name}"; remove it`);
    } else {
      replaces.push({ value: replaced, at: item.at('name'), path: item.pathOf('name') });
    }
  }
  return replaces;
}

function readUnlimited(reader: FieldReader): undefined {
  const unit = reader.name('unit');
  if (unit !== undefined && unitOf(unit) !== undefined) {
    reader.error('unit', 'an unlimited rule has no unit; remove "unit" or "unlimited"');
  } else if (unit !== undefined) {
    // No unit of envoyproxy/ratelimit either, which lets it pass here.
    reader.warn('unit', `"${unit.slice(0, 60)}" is ignored, as the rule is unlimited; remove it`);
  }
  if (reader.field('token_bucket') !== undefined) {
    reader.error('token_bucket', 'an unlimited rule has no bucket; remove "token_bucket" or "unlimited"');
  }
  if (reader.field('requests_per_unit') !== undefined) {
    const number = reader.integer('requests_per_unit', 0, MAX_UINT32);
    if (number !== undefined) {
      reader.warn('requests_per_unit', 'the number is ignored, as the rule is unlimited');
    }
  }
  for (const key of ['response_headers', 'denied_response']) {
    if (reader.field(key) !== undefined)
      reader.warn(key, `"${key}" is ignored, as the rule is unlimited; remove it`);
  }
  return undefined;
}

function readRate(reader: FieldReader): Rate | undefined {
  if (reader.field('token_bucket') === undefined) return readWindow(reader);
  for (const key of ['unit', 'requests_per_unit']) {
    if (reader.field(key) === undefined) continue;
    reader.error(key, `"${key}" cannot stand beside "token_bucket"; keep one of the two`);
  }
  const bucket = reader.mapping('token_bucket');
  return bucket === undefined ? undefined : readTokenBucket(bucket);
}

function readWindow(reader: FieldReader): Rate | undefined {
  const text = reader.name('unit');
  const unit = readUnit(reader, text);
  const requests = reader.integer('requests_per_unit', 0, MAX_UINT32);
  if (unit === undefined) return undefined;
  if (reader.field('requests_per_unit') === undefined) {
    reader.warn(
      'requests_per_unit',
      '"requests_per_unit" is missing and counts as 0: the rule denies every request; write 0 if that is meant',
    );
  }
  return windowRate(unit, requests ?? 0);
}

/** Units in any case, as in envoyproxy/ratelimit. */
function unitOf(text: string): WindowUnit | undefined {
  return WINDOW_UNITS.find((candidate) => candidate === text.toLowerCase());
}

function readUnit(reader: FieldReader, text: string | undefined): WindowUnit | undefined {
  if (text === undefined) {
    // What has the wrong type is reported already.
    if (reader.field('unit') !== undefined) return undefined;
    const message = reader.has('requests_per_unit')
      ? `"unit" is missing; it is one of ${WINDOW_UNITS.join(', ')}`
      : '"rate_limit" holds no limit; give token_bucket, unit with requests_per_unit, or unlimited: true';
    reader.problems.error(reader.map.at, reader.has('unit') ? reader.pathOf('unit') : reader.path, message);
    return undefined;
  }
  const unit = unitOf(text);
  if (unit === undefined) {
    const near = closest(text, WINDOW_UNITS);
    const hint = near === undefined ? '' : `; did you mean "${near}"?`;
    reader.error(
      'unit',
      `"${text.slice(0, 60)}" is no unit; the units are ${WINDOW_UNITS.join(', ')}${hint}`,
    );
  }
  return unit;
}

function readTokenBucket(bucket: FieldReader): Rate | undefined {
  bucket.expectKeys(['max_tokens', 'tokens_per_fill', 'fill_interval']);
  const maxTokens = readMaxTokens(bucket);
  const perFill = bucket.integer('tokens_per_fill', 1, MAX_UINT32);
  const interval = readFillInterval(bucket);
  if (bucket.field('tokens_per_fill') !== undefined && perFill === undefined) return undefined;
  if (maxTokens === undefined || interval === undefined) return undefined;
  const fillMicros = (BigInt(maxTokens) * BigInt(interval)) / BigInt(perFill ?? 1);
  if (fillMicros > BigInt(MAX_FILL_MICROS)) {
    bucket.problems.error(
      bucket.map.at,
      bucket.path,
      'an empty bucket would need more than 100 years to fill; lower max_tokens or fill_interval, or raise tokens_per_fill',
    );
    return undefined;
  }
  return tokenBucketRate(maxTokens, perFill ?? 1, interval);
}

function readMaxTokens(bucket: FieldReader): number | undefined {
  const field = bucket.field('max_tokens');
  if (field === undefined) {
    bucket.problems.error(
      bucket.map.at,
      bucket.path,
      '"max_tokens" is missing; it is the capacity of the bucket',
    );
    return undefined;
  }
  if (field.value.kind === 'scalar' && field.value.plain && field.value.text === '0') {
    bucket.error(
      'max_tokens',
      'a bucket of 0 tokens is none; to deny every request write unit and requests_per_unit: 0 instead of token_bucket',
    );
    return undefined;
  }
  return bucket.integer('max_tokens', 1, MAX_UINT32);
}

function readFillInterval(bucket: FieldReader): number | undefined {
  if (bucket.field('fill_interval') === undefined) {
    bucket.problems.error(
      bucket.map.at,
      bucket.path,
      '"fill_interval" is missing; it is the time in which tokens_per_fill tokens are added, as in 1s',
    );
    return undefined;
  }
  const text = bucket.text('fill_interval');
  if (text === undefined) return undefined;
  const nanos = parseGoDuration(text);
  if (nanos === undefined) {
    const shown = text.slice(0, 60);
    bucket.error(
      'fill_interval',
      `"${shown}" is no duration; write a number and a unit, as in 150ms, 1s or 1h30m`,
    );
    return undefined;
  }
  if (nanos < BigInt(MIN_FILL_INTERVAL_MICROS) * 1000n) {
    bucket.error('fill_interval', 'the interval is shorter than 1ms; raise it and tokens_per_fill alike');
    return undefined;
  }
  if (nanos % 1000n !== 0n) {
    bucket.error('fill_interval', 'the interval is no whole number of microseconds; round it');
    return undefined;
  }
  if (nanos / 1000n > BigInt(MAX_FILL_MICROS)) {
    bucket.error('fill_interval', 'the interval is longer than 100 years; shorten it');
    return undefined;
  }
  return Number(nanos / 1000n);
}
