import { windowRate } from '../limiter/fixed-window.js';
import type { Rate } from '../limiter/rate.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';
import { UNIT_MICROS, type WindowUnit } from '../limiter/window-unit.js';
import type { Algorithm } from '../policy/policy.js';

/** Returns the rate of a limit override. */
export function overrideRate(unit: WindowUnit, requests: number, algorithm: Algorithm): Rate {
  if (algorithm === 'fixed_window' || requests === 0) return windowRate(unit, requests);
  return tokenBucketRate(requests, requests, UNIT_MICROS[unit]);
}
