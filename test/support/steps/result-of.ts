/** What work in steps comes to, done without a pause. */
export function resultOf<Result>(steps: Generator<'', Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
