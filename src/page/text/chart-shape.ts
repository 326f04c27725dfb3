/** Width and height of a drawing, in its own units. */
export interface ChartBox {
  readonly width: number;
  readonly height: number;
}

/** Length of what charts show, seconds. */
export const CHART_SPAN = 3600;

/** A round number that is not below any of `values`: the top of an axis from 0. */
export function axisTop(values: readonly number[]): number {
  const most = values.reduce((top, value) => Math.max(top, value), 0);
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step =
    [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= most * (1 - 1e-9)) ?? 10;
  return Number((step * power).toPrecision(6));
}

/**
 * The path of a line through the middle of each step, the last one at the right end. `slots`: how many steps the whole
 * width stands for; of more values the last ones are drawn.
 */
export function linePath(values: readonly number[], slots: number, top: number, box: ChartBox): string {
  return points(values, slots, top, box)
    .map(([x, y], at) => `${at === 0 ? 'M' : 'L'}${short(x)} ${short(y)}`)
    .join('');
}

/** The area below that line, closed; '' where there is none. */
export function areaPath(values: readonly number[], slots: number, top: number, box: ChartBox): string {
  const all = points(values, slots, top, box);
  const [first] = all;
  const last = all.at(-1);
  if (first === undefined || last === undefined) return '';
  const line = linePath(values, slots, top, box);
  return `${line}L${short(last[0])} ${box.height}L${short(first[0])} ${box.height}Z`;
}

/** Which value lies at a place of the width, from 0 to 1; undefined where none does. */
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

function short(place: number): number {
  return Math.round(place * 100) / 100;
}

/** Averages of groups of steps, the newest group first; the oldest one may hold fewer steps. */
export function groupAverages(values: readonly number[], perGroup: number): readonly number[] {
  const averages: number[] = [];
  for (let end = values.length; end > 0; end -= perGroup) {
    const group = values.slice(Math.max(0, end - perGroup), end);
    averages.push(group.reduce((sum, value) => sum + value, 0) / group.length);
  }
  return averages;
}

/** Averages of groups of steps in their order, in as many groups as `most` at most: for a drawing with few points. */
export function thinned(
  values: readonly number[],
  slots: number,
  most: number,
): { readonly values: readonly number[]; readonly slots: number; readonly per: number } {
  const per = Math.max(1, Math.ceil(slots / most));
  return { values: groupAverages(values, per).toReversed(), slots: Math.max(2, Math.ceil(slots / per)), per };
}
