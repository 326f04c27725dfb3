/** Width and height of a drawing, in its own units. */
export interface ChartBox {
  readonly width: number;
  readonly height: number;
}

/** Maximum length of charts, in seconds. */
export const CHART_SPAN = 3600;

/** Returns a round number that is at least the maximum of `values`, for the top of an axis that begins at 0. */
export function axisTop(values: readonly number[]): number {
  const most = values.reduce((top, value) => Math.max(top, value), 0);
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step =
    [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= most * (1 - 1e-9)) ?? 10;
  return Number((step * power).toPrecision(6));
}

/**
 * Returns the path of a line with one point for each step. The last step is at the right edge. `slots` is the number of
 * steps in the whole width; if there are more values, only the last ones are drawn.
 */
export function linePath(values: readonly number[], slots: number, top: number, box: ChartBox): string {
  return points(values, slots, top, box)
    .map(([x, y], at) => `${at === 0 ? 'M' : 'L'}${roundCoordinate(x)} ${roundCoordinate(y)}`)
    .join('');
}

/** Returns the closed path of the area below that line, or '' if there are no values. */
export function areaPath(values: readonly number[], slots: number, top: number, box: ChartBox): string {
  const all = points(values, slots, top, box);
  const [first] = all;
  const last = all.at(-1);
  if (first === undefined || last === undefined) return '';
  const line = linePath(values, slots, top, box);
  return `${line}L${roundCoordinate(last[0])} ${box.height}L${roundCoordinate(first[0])} ${box.height}Z`;
}

/** Returns the index of the value at a horizontal position from 0 to 1, or undefined if there is no value. */
export function indexAt(share: number, count: number, slots: number): number | undefined {
  const shown = Math.min(count, slots);
  const slot = Math.min(slots - 1, Math.max(0, Math.round(share * (slots - 1))));
  const index = slot - (slots - shown);
  return index < 0 ? undefined : count - shown + index;
}

function points(values: readonly number[], slots: number, top: number, box: ChartBox): [number, number][] {
  const shown = values.slice(-slots);
  const width = slots > 1 ? box.width / (slots - 1) : 0;
  return shown.map((value, at) => [
    (slots - shown.length + at) * width,
    box.height - (Math.min(value, top) / top) * box.height,
  ]);
}

function roundCoordinate(place: number): number {
  return Math.round(place * 100) / 100;
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

/** Steps reduced to fewer points. */
export interface Downsampled {
  readonly values: readonly number[];
  /** Number of points in the whole width. */
  readonly slots: number;
  /** Number of steps in a point. */
  readonly per: number;
  /** Number of steps in the newest point so far. */
  readonly newest: number;
}

/**
 * Returns the maximum of each group of steps, in order, for a drawing of about `most` points. Groups begin at steps
 * whose number is a multiple of the group length, so groups do not move when steps are added, and a burst keeps its
 * height.
 *
 * @param last number of the last step
 */
export function downsample(
  values: readonly number[],
  last: number,
  slots: number,
  most: number,
): Downsampled {
  const per = Math.max(1, Math.ceil(slots / most));
  const newest = (((last % per) + per) % per) + 1;
  const highest: number[] = [];
  for (let end = values.length, length = newest; end > 0; length = per) {
    highest.push(Math.max(...values.slice(Math.max(0, end - length), end)));
    end -= length;
  }
  // If the groups at both ends are incomplete, there is one more group.
  const points = Math.ceil(slots / per) + (per > 1 ? 1 : 0);
  return { values: highest.toReversed(), slots: Math.max(2, points), per, newest };
}
