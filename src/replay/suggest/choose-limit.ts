import { DAY, type DemandTable } from './demand-table.js';
import { oddness, SPOKEN_RATES, type SpokenRate, spokenNumber } from './spoken-rates.js';

/**
 * Demand that lasts longer than this must be met by the rate, and shorter demand by the burst. A retry storm of a few
 * minutes therefore raises the burst only.
 */
const HORIZON_SECONDS = 600;

/** Bounds of the suggested rate, relative to the measured rate with headroom. The roundest one is chosen. */
const ROUNDING = [0.95, 1.08] as const;
/** A rate that needs this many times the measured burst is below what callers sustain. */
const BELOW_SUSTAINED = 1.5;

/** Rates whose numbers are read together, because they are adjacent in memory. */
const RATES_AT_ONCE = 16;

const MAX_TOKENS = 2 ** 32 - 1;

/** A rate, and the smallest burst that passes the chosen share of callers at this rate. */
export interface Pair {
  readonly perSecond: number;
  readonly burst: number;
}

export interface ChosenLimit {
  /** One of {@link SPOKEN_RATES}. */
  readonly rate: SpokenRate;
  readonly burst: number;
  /** The pair that the callers need, without headroom. */
  readonly measured: Pair;
  /** A pair for each of {@link SPOKEN_RATES} that passes the same share of callers, without headroom. */
  readonly frontier: readonly Pair[];
  /** Bursts that 50, 90 and 99 percent of the callers need at the suggested rate. */
  readonly bursts: readonly [number, number, number];
  /** Hits in a day, with headroom. */
  readonly daily: number;
}

export interface Margins {
  /** The share of callers that would have had no denials. */
  readonly share: number;
  /** 0.2 adds 20 percent to the rate and to the burst. */
  readonly headroom: number;
}

/** Chooses a limit for callers: series of `table`. At least one. */
export function chooseLimit(
  table: DemandTable,
  callers: readonly number[],
  { share, headroom }: Margins,
): ChosenLimit {
  const frontier = frontierOf(table, callers, share);
  const measured = knee(frontier);
  const at = chooseRate(frontier, measured, headroom);
  const { burst } = frontier[at] as Pair;
  const needed = sorted(callers, (series) => table.burst(series, at));
  const days = sorted(callers, (series) => table.busiestWindow(series, DAY));
  return {
    rate: SPOKEN_RATES[at] as SpokenRate,
    burst: withHeadroom(Math.max(burst, measured.burst), headroom),
    measured,
    frontier,
    bursts: [atShare(needed, 0.5), atShare(needed, 0.9), atShare(needed, 0.99)],
    daily: withHeadroom(atShare(days, share), headroom),
  };
}

/** Returns a pair for each of {@link SPOKEN_RATES} that passes a share of the callers. */
function frontierOf(table: DemandTable, callers: readonly number[], share: number): readonly Pair[] {
  const frontier: Pair[] = [];
  const bursts = Array.from({ length: RATES_AT_ONCE }, () => new Float64Array(callers.length));
  for (let from = 0; from < SPOKEN_RATES.length; from += RATES_AT_ONCE) {
    const rates = SPOKEN_RATES.slice(from, from + RATES_AT_ONCE);
    for (const [i, series] of callers.entries()) {
      for (let j = 0; j < rates.length; j++) (bursts[j] as Float64Array)[i] = table.burst(series, from + j);
    }
    for (const [j, { perSecond }] of rates.entries()) {
      frontier.push({ perSecond, burst: atShare((bursts[j] as Float64Array).sort(), share) });
    }
  }
  return frontier;
}

/**
 * Returns the pair with which a caller can take the least within {@link HORIZON_SECONDS}. Between two rates of the
 * frontier, the lines through the pairs on both sides meet at the pair.
 */
function knee(frontier: readonly Pair[]): Pair {
  const costs = frontier.map(cost);
  const at = costs.indexOf(Math.min(...costs));
  let best = frontier[at] as Pair;
  for (const left of [at - 1, at]) {
    const meeting = meetingOf(frontier.slice(Math.max(0, left - 1), left + 3));
    if (meeting !== undefined && cost(meeting) < cost(best)) best = meeting;
  }
  return { ...best, burst: Math.ceil(best.burst) };
}

function cost({ perSecond, burst }: Pair): number {
  return burst + perSecond * HORIZON_SECONDS;
}

/** Returns where the line through the first two of four pairs meets the line through the last two, if in between. */
function meetingOf([a, b, c, d]: readonly Pair[]): Pair | undefined {
  if (a === undefined || b === undefined || c === undefined || d === undefined) return undefined;
  const left = slope(a, b);
  const right = slope(c, d);
  const perSecond = b.perSecond + (c.burst + right * (b.perSecond - c.perSecond) - b.burst) / (left - right);
  if (!(perSecond > b.perSecond && perSecond < c.perSecond)) return undefined;
  return { perSecond, burst: c.burst + right * (perSecond - c.perSecond) };
}

function slope(a: Pair, b: Pair): number {
  return (b.burst - a.burst) / (b.perSecond - a.perSecond);
}

/** Returns the index of the rate to suggest: about the measured rate with headroom, and a number that people say. */
function chooseRate(frontier: readonly Pair[], measured: Pair, headroom: number): number {
  const wanted = measured.perSecond * (1 + headroom);
  const [below, above] = ROUNDING;
  const fits = ({ perSecond, burst }: Pair): boolean =>
    perSecond >= measured.perSecond * below && burst <= measured.burst * BELOW_SUSTAINED;
  const rates = frontier.map((pair, at) => ({ at, pair, odd: oddness(SPOKEN_RATES[at]?.count ?? 0) }));
  const near = rates.filter(
    ({ pair }) => pair.perSecond >= wanted * below && pair.perSecond <= wanted * above && fits(pair),
  );
  const distance = (pair: Pair): number => Math.abs(Math.log(pair.perSecond / wanted));
  near.sort((a, b) => a.odd - b.odd || distance(a.pair) - distance(b.pair));
  const chosen = near[0] ?? rates.find(({ pair }) => pair.perSecond >= wanted && fits(pair));
  return chosen?.at ?? frontier.length - 1;
}

function withHeadroom(count: number, headroom: number): number {
  return Math.min(MAX_TOKENS, spokenNumber(count * (1 + headroom)));
}

/** Returns a number of each caller, in ascending order. */
export function sorted(callers: readonly number[], numberOf: (series: number) => number): Float64Array {
  return Float64Array.from(callers, numberOf).sort();
}

/** Returns the smallest of ascending numbers that at least `share` of the numbers do not exceed. */
export function atShare(ascending: Float64Array, share: number): number {
  // 0.999 * 1000 is not a whole number in floating point.
  const at = Math.ceil(ascending.length * share - 1e-9) - 1;
  return ascending[Math.max(0, at)] ?? 0;
}
