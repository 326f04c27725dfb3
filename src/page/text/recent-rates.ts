import type { AllSeries } from '../../admin/page/messages.js';
import { countOf } from './numbers.js';

export function hasTraffic(series: Partial<AllSeries>): boolean {
  return Object.values(series).some((values) => values.some((value) => value > 0));
}

/**
 * Returns a sentence about rules without rates, or undefined if weir records the rates of all rules.
 *
 * @param most HISTORY_RULES, or undefined if unknown
 * @param crowded whether more rules than HISTORY_RULES had requests in the last hour
 */
export function missingRatesNote(most: number | undefined, crowded: boolean): string | undefined {
  if (most === 0) return 'HISTORY_RULES is 0, so weir records only the total rates of all rules.';
  if (!crowded) return undefined;
  const kept = most === undefined ? 'some rules' : countOf(most, 'rule');
  return (
    `weir records the rates of ${kept} (HISTORY_RULES). Requests for other rules count only toward the ` +
    'total rates.'
  );
}
