import { MAX_FILL_MICROS } from '../../../limiter/rate.js';
import type { TokenBucketSpec } from '../../../policy/rate-spec.js';
import type { FieldReader } from '../../yaml/field-reader.js';
import { readMapping } from '../field-values.js';

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
  const values = readMapping(bucket, 'token_bucket');
  const { max_tokens: maxTokens, tokens_per_fill: perFill, fill_interval: intervalMicros } = values;
  if (maxTokens === undefined || intervalMicros === undefined) return undefined;
  return { maxTokens, perFill, intervalMicros };
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
