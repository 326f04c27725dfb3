import type { HistoryAnswer, HistoryPoint, RateSeries } from '../../server/page/messages.js';
import { CHART_SPAN } from './chart-shape.js';
import { countOf } from './numbers.js';

const NOTHING: RateSeries = { ok: [], denied: [], would: [] };

/** The rates of the last hour, of all rules together: as they were told at once, and step by step since then. */
export class KnownRates {
  #step = 0;
  #ends = 0;
  #series: RateSeries = NOTHING;

  /** Length of a step, seconds; 0 while nothing is known. */
  get step(): number {
    return this.#step;
  }

  /** When the last step ended. */
  get ends(): number {
    return this.#ends;
  }

  get series(): RateSeries {
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
  add({ ends, ok, denied, would }: HistoryPoint): boolean {
    if (this.#step === 0) return false;
    const steps = Math.round((ends - this.#ends) / this.#step);
    if (steps <= 0) return ends > this.#ends - CHART_SPAN;
    if (steps > 1) return false;
    const { slots } = this;
    const added = (values: readonly number[], value: number): readonly number[] =>
      [...values, value].slice(-slots);
    this.#ends = ends;
    this.#series = {
      ok: added(this.#series.ok, ok),
      denied: added(this.#series.denied, denied),
      would: added(this.#series.would, would),
    };
    return true;
  }
}

/** Whether anything was asked in the hour that a series is of. */
export function hasTraffic({ ok, denied, would }: RateSeries): boolean {
  return [ok, denied, would].some((values) => values.some((value) => value > 0));
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
