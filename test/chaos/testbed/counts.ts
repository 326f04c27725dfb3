/** Counts since the start of a fault. */
export interface Counts {
  calls: number;
  late: number;
  /** Calls answered by `on_store_failure`. */
  byPolicy: number;
  /** OVER_LIMIT answers without a decision: Redis was available, but weir had no time or capacity. */
  undecidedDenials: number;
  maxLateMs: number;
  /** Calls with a long deadline for buckets that the fault does not affect. */
  unaffected: number;
  /** Descriptions of the unaffected calls without a decision. */
  readonly unaffectedUndecided: string[];
}

export const noCounts = (): Counts => ({
  ...{ calls: 0, late: 0, byPolicy: 0, undecidedDenials: 0, maxLateMs: 0 },
  ...{ unaffected: 0, unaffectedUndecided: [] },
});
