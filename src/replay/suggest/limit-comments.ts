import { atShare, type Pair, sorted } from './choose-limit.js';
import { durationText, minuteText } from './coverage.js';
import { type CountedWindow, DAY, type DemandTable, HOUR, MINUTE } from './demand-table.js';
import { LEAST_CALLERS } from './outliers.js';
import { grouped, rateText, SPOKEN_RATES } from './spoken-rates.js';
import type { Outlier, RouteLimit, SuggestOptions } from './suggest.js';

export const DAY_MICROS = 86_400e6;
const [HOUR_MICROS, MINUTE_MICROS] = [3600e6, 60e6];

/** Outliers that a comment names. */
const MAX_NAMED = 20;
/** Distance of the shown pairs of the frontier, in rates. */
const FRONTIER_STEP = 3;

/** Returns what a limit is based on, as sentences of which each begins a line. */
export function limitComments(
  limit: RouteLimit,
  table: DemandTable,
  { daily }: SuggestOptions,
): readonly string[] {
  const { node, requests, hits, wellBehaved, outliers, measured, bursts } = limit;
  const { coverage } = node;
  const { firstMicros, lastMicros, spanMicros } = coverage;
  const span = `${durationText(spanMicros)}, ${minuteText(firstMicros)} to ${minuteText(lastMicros)}`;
  const unseen = coverage.unseen();
  const units = hits === requests ? 'requests' : 'hits';
  const count = hits === requests ? '' : ` with ${grouped(hits)} hits`;
  const busiest = (window: CountedWindow): string =>
    percentiles(sorted(wellBehaved, (series) => table.busiestWindow(series, window)));
  const isDay = spanMicros >= DAY_MICROS;
  return [
    `Based on ${grouped(requests)} requests${count} of ${callers(node.callers.size)} in ${span}.`,
    ...(spanMicros < HOUR_MICROS - MINUTE_MICROS / 2
      ? ['The log covers less than an hour, so longer use is unknown.']
      : []),
    ...(unseen === '' ? [] : [`Not seen (UTC): ${unseen}.`]),
    `Most ${units} of a caller in a minute: ${busiest(MINUTE)}.`,
    `Most ${units} of a caller in an hour: ${busiest(HOUR)}.`,
    ...(daily && isDay ? [`Most ${units} of a caller in a day: ${busiest(DAY)}.`] : []),
    ...(daily && !isDay ? ['No daily limit, because the log covers less than a day.'] : []),
    `Measured, without headroom: ${pairText(measured)}.`,
    `Burst that a caller needs at the suggested rate: ${shares(bursts)}.`,
    `Other pairs for the same callers: ${otherPairs(limit)}.`,
    deniedText(limit),
    ...(node.callers.size < LEAST_CALLERS ? ['There are too few callers to find outliers.'] : []),
    ...outlierTexts(outliers),
  ];
}

function deniedText({ wellBehaved, denied, outliers }: RouteLimit): string {
  const all = `Would have denied requests of ${grouped(denied)} of ${callers(wellBehaved.length)}`;
  const others = outliers.filter(({ isDenied }) => isDenied).length;
  const more = outliers.length === 0 ? '' : `, and of ${others} of ${outliers.length} outliers`;
  return `${all}${more}.`;
}

function outlierTexts(outliers: readonly Outlier[]): readonly string[] {
  if (outliers.length === 0) return [];
  const named = outliers.slice(0, MAX_NAMED);
  const hidden = outliers.length - named.length;
  return [
    'Outliers, which the limit is not based on. If you know one of them, give it a separate rule:',
    ...named.map(
      ({ name, busiestHour, needs }) =>
        `- ${name}: about ${grouped(busiestHour)} in its busiest hour; needs ${pairText(needs)}`,
    ),
    ...(hidden === 0 ? [] : [`- ${grouped(hidden)} more`]),
  ];
}

/** Returns pairs with a lower and a higher rate than the suggested one. */
function otherPairs({ frontier, rate }: RouteLimit): string {
  const at = SPOKEN_RATES.indexOf(rate);
  const others = [-2, -1, 1, 2].map((steps) => frontier[at + steps * FRONTIER_STEP]);
  return others.flatMap((pair) => (pair === undefined ? [] : [pairText(pair)])).join('; ');
}

function pairText({ perSecond, burst }: Pair): string {
  return `${rateText(perSecond)} with a burst of ${grouped(burst)}`;
}

function percentiles(ascending: Float64Array): string {
  return shares([atShare(ascending, 0.5), atShare(ascending, 0.9), atShare(ascending, 0.99)]);
}

function shares([p50, p90, p99]: readonly [number, number, number]): string {
  return `p50 ${grouped(p50)}, p90 ${grouped(p90)}, p99 ${grouped(p99)}`;
}

function callers(count: number): string {
  return `${grouped(count)} ${count === 1 ? 'caller' : 'callers'}`;
}
