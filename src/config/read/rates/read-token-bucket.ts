import { MAX_FILL_MICROS, MAX_UINT32 } from '../../../limiter/rate.js';
import type { TokenBucketSpec } from '../../../policy/rate-spec.js';
import type { FieldReader } from '../../yaml/field-reader.js';
import { keysOf } from '../policy-fields.js';
import type { DurationKind } from '../scalar-kinds.js';

const FILL_INTERVAL: DurationKind = {
  kind: 'duration',
  min: 1000,
  max: MAX_FILL_MICROS,
  step: 1,
  less: 'or multiply it and tokens_per_fill by the same number',
};

/** A `token_bucket` as written in the file, with each number within its bounds; see {@link checkedBucket}. */
export interface TokenBucketFields {
  readonly maxTokens: number;
  readonly perFill: number;
  readonly intervalMicros: number;
}

/** The debt of a rate; see {@link TokenBucketSpec}. */
export type Debt = Pick<TokenBucketSpec, 'maxDebt' | 'minChargeHits'>;

/** Reads a `token_bucket`. Returns undefined if there are errors, all of which are reported. */
export function readTokenBucket(bucket: FieldReader): TokenBucketFields | undefined {
  bucket.expectKeys(keysOf('token_bucket'));
  const maxTokens = readMaxTokens(bucket);
  const perFill = bucket.integer('tokens_per_fill', 1, MAX_UINT32);
  const interval = readFillInterval(bucket);
  if (bucket.field('tokens_per_fill') !== undefined && perFill === undefined) return undefined;
  if (maxTokens === undefined || interval === undefined) return undefined;
  return { maxTokens, perFill: perFill ?? 1, intervalMicros: interval };
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

/** Returns the rate of a token bucket. Reports an error if the bucket takes too long to fill. */
export function checkedBucket(
  fields: TokenBucketFields & Debt,
  { reader, at, remedy }: Place,
): TokenBucketSpec | undefined {
  const { maxTokens, perFill, intervalMicros, maxDebt, minChargeHits } = fields;
  // Fractions of a microsecond are dropped, as in tokenBucketRate.
  const fillMicros = (tokens: number): bigint => (BigInt(tokens) * BigInt(intervalMicros)) / BigInt(perFill);
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
  return {
    kind: 'token_bucket',
    maxTokens,
    tokensPerFill: perFill,
    fillIntervalMicros: intervalMicros,
    maxDebt,
    minChargeHits,
  };
}

function readMaxTokens(bucket: FieldReader): number | undefined {
  const field = bucket.field('max_tokens');
  if (field === undefined) {
    bucket.problems.error(
      bucket.map.at,
      bucket.path,
      '"max_tokens" is missing; write the capacity of the bucket, such as 100',
    );
    return undefined;
  }
  if (field.value.kind === 'scalar' && field.value.plain && field.value.text === '0') {
    bucket.error(
      'max_tokens',
      'a bucket must hold at least 1 token; to deny every request, write unit and requests_per_unit: 0 ' +
        'instead of token_bucket',
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
      '"fill_interval" is missing; write the interval at which tokens_per_fill tokens are added, such as 1s',
    );
    return undefined;
  }
  return bucket.scalar('fill_interval', FILL_INTERVAL);
}
