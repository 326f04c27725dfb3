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
