import { CHART_SPAN } from './chart-shape.js';

/** A length of time that charts can show. */
export interface ChartRange {
  /** Name of the range in the URL. */
  readonly name: string;
  readonly words: string;
  /** Length in seconds. If absent, charts show all known data, at most an hour. */
  readonly span?: number;
}

const SINCE_START: ChartRange = { name: 'start', words: 'since start' };
/**
 * The ranges that charts can show. The last one is the default, because it fills the chart of a server that has just
 * started.
 */
export const CHART_RANGES: readonly ChartRange[] = [
  { name: '5m', words: '5 min', span: 300 },
  { name: '15m', words: '15 min', span: 900 },
  { name: '1h', words: '1 h', span: CHART_SPAN },
  SINCE_START,
];
/** Minimum length of a chart that begins at the start of the server, in seconds. */
const MIN_SPAN = 60;
const PARAMETER = 'range';

/** The default if the query selects no range. */
export function rangeOf(query: string): ChartRange {
  const name = new URLSearchParams(query).get(PARAMETER);
  return CHART_RANGES.find((range) => range.name === name) ?? SINCE_START;
}

/** Omits the default range. */
export function queryWith(query: string, { name }: ChartRange): string {
  const parameters = new URLSearchParams(query);
  if (name === SINCE_START.name) parameters.delete(PARAMETER);
  else parameters.set(PARAMETER, name);
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

/**
 * Returns the number of steps that a chart shows. `step` is the length of a step in seconds, and `known` the number of
 * steps with data.
 */
export function slotsOf({ span }: ChartRange, step: number, known: number): number {
  if (step <= 0) return 2;
  const seconds = span ?? Math.min(CHART_SPAN, Math.max(MIN_SPAN, known * step));
  return Math.max(2, Math.round(seconds / step));
}
