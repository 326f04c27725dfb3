/** Maximum length of charts, in seconds. */
export const CHART_SPAN = 3600;

/** Returns a round number that is at least `most`, for the top of an axis that begins at 0. */
export function axisTop(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step =
    [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= most * (1 - 1e-9)) ?? 10;
  return Number((step * power).toPrecision(6));
}

/** Returns the averages of groups of steps, the newest group first. The oldest group may contain fewer steps. */
export function groupAverages(values: readonly number[], perGroup: number): readonly number[] {
  const averages: number[] = [];
  for (let end = values.length; end > 0; end -= perGroup) {
    const group = values.slice(Math.max(0, end - perGroup), end);
    averages.push(group.reduce((sum, value) => sum + value, 0) / group.length);
  }
  return averages;
}

/**
 * Returns the highest value of each group of `per` steps, and the time at which the group ends, so that a burst keeps
 * its height. Groups begin at steps whose number is a multiple of `per`, so they do not move when steps are added.
 *
 * @param step length of a step, in seconds
 * @param ends end of the last step, in seconds since the epoch
 */
export function peaksOf(
  values: readonly number[],
  step: number,
  ends: number,
  per: number,
): [number[], number[]] {
  const last = Math.round(ends / step) - 1;
  const peaks = new Map<number, number>();
  for (const [at, value] of values.entries()) {
    const group = Math.floor((last - (values.length - 1 - at)) / per);
    peaks.set(group, Math.max(value, peaks.get(group) ?? 0));
  }
  const times = [...peaks.keys()].map((group) =>
    Math.min(ends, ends + ((group + 1) * per - last - 1) * step),
  );
  return [times, [...peaks.values()]];
}
