import type { PathPattern } from '../paths/path-pattern.js';

/** What a rule asks of one source: the exact value, or a path that matches. Undefined: anything. */
export type DeriveCondition = string | PathPattern | undefined;

/** A rule of a `derive` step. */
export interface DeriveRule {
  /** In the order of the step's sources. */
  readonly conditions: readonly DeriveCondition[];
  /** Value of the new entry. */
  readonly value: string;
}
