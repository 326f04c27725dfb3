import type { PathPattern } from '../paths/path-pattern.js';

/** The condition of a rule for one source: an exact value, or a path pattern. Undefined: any value. */
export type DeriveCondition = string | PathPattern | undefined;

/** A rule of a `derive` step. */
export interface DeriveRule {
  /** In the order of the step's sources. */
  readonly conditions: readonly DeriveCondition[];
  /** Value of the derived entry. */
  readonly value: string;
}
