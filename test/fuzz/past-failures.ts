/**
 * Seeds of cases that have failed. A change of the generators gives these seeds another meaning. Empty the list then,
 * and turn each failure into a separate test.
 */
export const PAST_FAILURES: readonly number[] = [];
