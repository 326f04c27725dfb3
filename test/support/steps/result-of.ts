/** Runs sliced work without pauses and returns its result. */
export function resultOf<Result>(steps: Generator<'', Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
