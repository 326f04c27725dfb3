/**
 * Options that set how often fast-check tries a property. Tests run a third of `full`, always with the same cases. With
 * WEIR_TEST_FULL they run all of it, with new cases in every run.
 */
export function runs(full: number): { readonly numRuns: number; readonly seed?: number } {
  if (process.env['WEIR_TEST_FULL'] !== undefined) return { numRuns: full };
  return { numRuns: Math.ceil(full / 3), seed: 1 };
}
