import type { TakeItem } from '../../limiter/bucket-store.js';
import { tokenBucketRate } from '../../limiter/token-bucket.js';

/** The probe's bucket fills in a second, so its key does not stay. */
export const PROBE: TakeItem = {
  key: 'probe',
  tagLength: 5,
  rate: tokenBucketRate(1_000_000, 1_000_000, 1_000_000),
  hits: 1,
  refund: false,
  enforcement: 'observe',
};
