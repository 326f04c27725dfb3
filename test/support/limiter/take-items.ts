import type { Enforcement, Take } from '../../../src/limiter/bucket-store.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';

/** The rate of most tests: 100 tokens, refilled at 10 a second. */
export const HUNDRED = tokenBucketRate(100, 10, 1_000_000);

export interface ItemOptions {
  readonly hits?: number;
  readonly refund?: boolean;
  readonly enforcement?: Enforcement;
}

/** Returns an item on the bucket `key`: one enforced hit unless `options` change it. The whole key is the hash tag. */
export function takeItem(key: string, rate: Rate, options: ItemOptions = {}): Take {
  return {
    key,
    hashTagLength: key.length,
    rate,
    hits: options.hits ?? 1,
    refund: options.refund ?? false,
    enforcement: options.enforcement ?? 'enforce',
  };
}
