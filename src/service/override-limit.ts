import type { Entry } from '../limiter/entry.js';
import { windowRate } from '../limiter/fixed-window.js';
import type { Rate } from '../limiter/rate.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';
import { UNIT_MICROS, type WindowUnit } from '../limiter/window-unit.js';
import { namingSteps } from '../policy/match-work.js';
import type { Algorithm } from '../policy/policy.js';

/** Steps (MatchWork) for each entry in the name of a limit override's bucket. */
const OVERRIDE_ENTRY_STEPS = 60;

/** Returns the rate of a limit override. */
export function overrideRate(unit: WindowUnit, requests: number, algorithm: Algorithm): Rate {
  if (algorithm === 'fixed_window' || requests === 0) return windowRate(unit, requests);
  return tokenBucketRate(requests, requests, UNIT_MICROS[unit]);
}

/** Returns the steps for naming the bucket of a limit override: the name contains every entry. */
export function overrideNamingSteps(entries: readonly Entry[]): number {
  let steps = 0;
  for (let i = 0; i < entries.length; i++) steps += OVERRIDE_ENTRY_STEPS + namingSteps(entries[i] as Entry);
  return steps;
}
