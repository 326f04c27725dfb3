import type { AllSeries, HistoryAnswer, HistoryPoint } from '../../admin/page/messages.js';
import { CHART_SPAN } from './chart-shape.js';
import { countOf } from './numbers.js';

const KEYS = ['ok', 'denied', 'would', 'errors', 'failure_allow', 'failure_deny', 'failure_local'] as const;
const EMPTY_SERIES = seriesOf(() => []);

function seriesOf(valuesOf: (key: (typeof KEYS)[number]) => readonly number[]): AllSeries {
  return Object.fromEntries(KEYS.map((key) => [key, valuesOf(key)])) as unknown as AllSeries;
}

/** The rates of all rules together in the last hour: the history as first read, and the steps since then. */
export class RecentRates {
  #step = 0;
  #ends = 0;
  #series: AllSeries = EMPTY_SERIES;

  /** Length of a step, in seconds; 0 before the first answer. */
  get step(): number {
    return this.#step;
  }

  /** End of the last step, in seconds since the epoch. */
  get ends(): number {
    return this.#ends;
  }

  get series(): AllSeries {
    return this.#series;
  }

  /** Number of steps in an hour. */
  get slots(): number {
    return this.#step > 0 ? Math.max(2, Math.round(CHART_SPAN / this.#step)) : 2;
  }

  /** Replaces all rates by the rates of an answer. */
  read({ step, ends, all }: HistoryAnswer): void {
    this.#step = step;
    this.#ends = ends;
    this.#series = all ?? EMPTY_SERIES;
  }

  /**
   * Adds a step. Returns false if steps are missing before it, so that the history must be read again. A known step
   * is ignored.
   */
  add(point: HistoryPoint): boolean {
    const { ends } = point;
    if (this.#step === 0) return false;
    const steps = Math.round((ends - this.#ends) / this.#step);
    if (steps <= 0) return ends > this.#ends - CHART_SPAN;
    if (steps > 1) return false;
    const { slots } = this;
    const before = this.#series;
    this.#ends = ends;
    this.#series = seriesOf((key) => [...before[key], point[key]].slice(-slots));
    return true;
  }
}

/** Returns whether a series contains any request. */
export function hasTraffic(series: AllSeries): boolean {
  return KEYS.some((key) => series[key].some((value) => value > 0));
}

/**
 * Returns a sentence about rules without rates, or undefined if weir records the rates of all rules.
 *
 * @param most HISTORY_RULES, or undefined if unknown
 * @param crowded whether more rules than HISTORY_RULES had requests in the last hour
 */
export function missingRatesNote(most: number | undefined, crowded: boolean): string | undefined {
  if (most === 0) {
    return 'HISTORY_RULES is 0, so weir records only the total rates of all rules.';
  }
  if (!crowded) return undefined;
  const kept = most === undefined ? 'some rules' : countOf(most, 'rule');
  return (
    `weir records the rates of ${kept} (HISTORY_RULES). Requests for other rules count only toward the ` +
    'total rates.'
  );
}
