import type { Descriptor } from '../codec/messages.js';
import type { WindowUnit } from '../limiter/window-unit.js';

/**
 * Window units by number of envoy.type.v3.RateLimitUnit. Also accepts WEEK (7) of RateLimitResponse, since callers mix
 * the two enums up.
 */
export const OVERRIDE_UNITS: Readonly<Record<number, WindowUnit>> = {
  1: 'second',
  2: 'minute',
  3: 'hour',
  4: 'day',
  5: 'month',
  6: 'year',
  7: 'week',
};

/** Returns the first error in the descriptors of a request to a known domain, as a sentence for the caller. */
export function findBadDescriptor(descriptors: readonly Descriptor[]): string | undefined {
  for (let index = 0; index < descriptors.length; index++) {
    const descriptor = descriptors[index] as Descriptor;
    for (let at = 0; at < descriptor.entries.length; at++) {
      if (descriptor.entries[at]?.key === '') {
        return `descriptors[${index}].entries[${at}].key must not be empty`;
      }
    }
    if (descriptor.limit !== undefined && OVERRIDE_UNITS[descriptor.limit.unit] === undefined) {
      return (
        `descriptors[${index}].limit.unit must be one of SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5), ` +
        `YEAR (6), WEEK (7), not ${descriptor.limit.unit}`
      );
    }
  }
  return undefined;
}
