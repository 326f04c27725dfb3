/** The target of a run: only the HPACK decoder, a connection, or both in turn. */
export type FuzzTarget = 'hpack' | 'engine' | 'all';

export interface FuzzTask {
  readonly target: FuzzTarget;
  /** Seed of the first case. Each further case has the next number. */
  readonly seed: number;
  readonly cases: number;
  /** End of the run on the wall clock, in milliseconds. */
  readonly untilMs: number;
  /** The progress of the run, with the indexes of {@link PROGRESS}. */
  readonly progress: Float64Array;
}

/** Indexes in {@link FuzzTask.progress}. */
export const PROGRESS = { cases: 0, inputs: 1, seed: 2, heapMegabytes: 3, length: 4 } as const;

export interface FuzzFailure {
  readonly target: 'hpack' | 'engine';
  readonly seed: number;
  readonly error: string;
  /** The inputs of the case, in order. */
  readonly inputs: readonly string[];
}
