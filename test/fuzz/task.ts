/** What may be fuzzed: the HPACK decoder alone, a connection, or both by turns. */
export type FuzzTarget = 'hpack' | 'engine' | 'all';

export interface FuzzTask {
  readonly target: FuzzTarget;
  /** The first case's; each further one's is one more. */
  readonly seed: number;
  readonly cases: number;
  /** Of the wall clock, in ms. */
  readonly untilMs: number;
  /** {@link PROGRESS}. */
  readonly progress: Float64Array;
}

/** Places in {@link FuzzTask.progress}. */
export const PROGRESS = { cases: 0, inputs: 1, seed: 2, heapMegabytes: 3, length: 4 } as const;

export interface FuzzFailure {
  readonly target: 'hpack' | 'engine';
  readonly seed: number;
  readonly error: string;
  /** What was fed in, in order. */
  readonly inputs: readonly string[];
}
