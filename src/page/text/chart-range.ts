import { CHART_SPAN } from './chart-shape.js';

/** A length of time that charts can show. */
export interface ChartRange {
  /** As the address of the page has it. */
  readonly name: string;
  readonly words: string;
  /** Seconds; undefined: all that is known, an hour at most. */
  readonly span?: number;
}

const SINCE_START: ChartRange = { name: 'start', words: 'since start' };
/** What the time axis of charts may show. The last one is the default: it leaves no chart of a fresh start empty. */
export const CHART_RANGES: readonly ChartRange[] = [
  { name: '5m', words: '5 min', span: 300 },
  { name: '15m', words: '15 min', span: 900 },
  { name: '1h', words: '1 h', span: CHART_SPAN },
  SINCE_START,
];
/** A chart since a start shows no less than this, seconds. */
const LEAST_SPAN = 60;
const PARAMETER = 'range';

/** The range that the query of an address names, or the default. */
export function rangeOf(query: string): ChartRange {
  const name = new URLSearchParams(query).get(PARAMETER);
  return CHART_RANGES.find((range) => range.name === name) ?? SINCE_START;
}

/** The query of an address with this range; the default is left out. */
export function queryWith(query: string, { name }: ChartRange): string {
  const parameters = new URLSearchParams(query);
  if (name === SINCE_START.name) parameters.delete(PARAMETER);
  else parameters.set(PARAMETER, name);
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

/** How many steps of `step` seconds a chart shows where so many are known. */
export function slotsOf({ span }: ChartRange, step: number, known: number): number {
  if (step <= 0) return 2;
  const seconds = span ?? Math.min(CHART_SPAN, Math.max(LEAST_SPAN, known * step));
  return Math.max(2, Math.round(seconds / step));
}
