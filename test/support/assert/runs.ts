/**
 * How often fast-check tries a property. Tests try a third of `full`, always the same cases. With WEIR_TEST_FULL they
 * try all of it, new cases in every run.
 */
export function runs(full: number): { readonly numRuns: number; readonly seed?: number } {
  if (process.env['WEIR_TEST_FULL'] !== undefined) return { numRuns: full };
  return { numRuns: Math.ceil(full / 3), seed: 1 };
}
