import type { Operator } from './format-string.js';

/**
 * The operators whose values are needed from each line. Each user registers its operators, and later finds their values
 * at the indexes that {@link indexOf} returned.
 */
export class Columns {
  readonly #operators: Operator[] = [];

  /** Registers an operator, unless it is registered. Returns the index of its value in `LineValues`. */
  indexOf(operator: Operator): number {
    const known = this.#operators.indexOf(operator);
    if (known >= 0) return known;
    return this.#operators.push(operator) - 1;
  }

  get operators(): readonly Operator[] {
    return this.#operators;
  }
}
