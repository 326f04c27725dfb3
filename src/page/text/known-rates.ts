import type { AllSeries, HistoryAnswer, HistoryPoint } from '../../admin/page/messages.js';
import { CHART_SPAN } from './chart-shape.js';
import { countOf } from './numbers.js';

const KEYS = ['ok', 'denied', 'would', 'errors', 'failure_allow', 'failure_deny', 'failure_local'] as const;
const NOTHING = seriesOf(() => []);

function seriesOf(valuesOf: (key: (typeof KEYS)[number]) => readonly number[]): AllSeries {
  return Object.fromEntries(KEYS.map((key) => [key, valuesOf(key)])) as unknown as AllSeries;
}

/** The rates of the last hour, of all rules together: as they were told at once, and step by step since then. */
export class KnownRates {
  #step = 0;
  #ends = 0;
  #series: AllSeries = NOTHING;

  /** Length of a step, seconds; 0 while nothing is known. */
  get step(): number {
    return this.#step;
  }

  /** When the last step ended. */
  get ends(): number {
    return this.#ends;
  }

  get series(): AllSeries {
    return this.#series;
  }

  /** How many steps an hour has. */
  get slots(): number {
    return this.#step > 0 ? Math.max(2, Math.round(CHART_SPAN / this.#step)) : 2;
  }

  /** Begins anew with an answer that has the series of all. */
  read({ step, ends, all }: HistoryAnswer): void {
    this.#step = step;
    this.#ends = ends;
    this.#series = all ?? NOTHING;
  }

  /**
   * Adds a step. False where it does not follow the last one, so that all is to be asked anew; one that is known
   * already changes nothing.
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

/** Whether anything was asked in the hour that a series is of. */
export function hasTraffic(series: AllSeries): boolean {
  return KEYS.some((key) => series[key].some((value) => value > 0));
}

/**
 * That figures of some rules are not kept, a sentence; undefined where those of all rules are.
 *
 * @param most HISTORY_RULES, undefined while it is not known
 * @param crowded whether more rules than these were asked in the last hour
 */
export function notAllKept(most: number | undefined, crowded: boolean): string | undefined {
  if (most === 0) {
    return 'HISTORY_RULES is 0: weir keeps the last hour of no single rule, only of all rules together.';
  }
  if (!crowded) return undefined;
  const kept = most === undefined ? 'some rules' : countOf(most, 'rule');
  const others = 'others were asked, too, and count in the charts of all rules';
  return `weir keeps the last hour of ${kept} only (HISTORY_RULES): ${others}.`;
}
