/** Greatest relative error of {@link QuantileSketch.quantile}. */
export const SKETCH_ERROR = 0.01;

const LOG_BASE = Math.log((1 + SKETCH_ERROR) / (1 - SKETCH_ERROR));

/**
 * Finds quantiles of positive numbers with a bounded relative error. The numbers are counted in intervals whose ends
 * have a constant ratio, so the memory does not depend on their number (Masson, Rim, Lee: DDSketch, VLDB 2019).
 */
export class QuantileSketch {
  count = 0;
  readonly #counts: number[] = [];

  /** Adds a number of at least 1. */
  add(value: number): void {
    const index = Math.ceil(Math.log(value) / LOG_BASE);
    while (this.#counts.length <= index) this.#counts.push(0);
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.count++;
  }

  /** Returns the number that is exceeded by at most the share `above` of all numbers. */
  exceededBy(above: number): number {
    let left = Math.floor(this.count * above);
    for (let index = this.#counts.length - 1; index >= 0; index--) {
      left -= this.#counts[index] as number;
      if (left < 0) return Math.exp(index * LOG_BASE) / (1 + SKETCH_ERROR);
    }
    return 0;
  }
}
