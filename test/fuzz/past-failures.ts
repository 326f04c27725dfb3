/**
 * Seeds whose case has failed once. A change of what seeds stand for empties this list: what it found is then a test of
 * its own.
 */
export const PAST_FAILURES: readonly number[] = [];
