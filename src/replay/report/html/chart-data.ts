import { shownName } from '../names.js';
import { shareText } from '../numbers.js';
import type { ReplayReport, RuleReport, Timeline } from '../report.js';
import { periodText, shortDate, timeOfDay } from './times.js';

/** The numbers that the script of a report draws (src/page/report/report.ts). Times are in seconds after the start. */
export interface ChartData {
  readonly denials: DenialsChart;
  /** The most affected groups; absent without any. */
  readonly affected?: AffectedChart;
  readonly use: readonly UseChart[];
}

/** A label on the time axis. */
export interface Tick {
  readonly at: number;
  readonly label: string;
}

/** The time axis of a chart. */
export interface TimeAxis {
  readonly seconds: number;
  readonly ticks: readonly Tick[];
}

export interface DenialsChart extends TimeAxis {
  /** Length of a step in seconds. */
  readonly step: number;
  /** The times of the steps, in words. */
  readonly labels: readonly string[];
  readonly before: readonly number[];
  readonly after: readonly number[];
}

export interface AffectedChart extends TimeAxis {
  readonly names: readonly string[];
  /** Periods in which a group lost requests, as [index of its name, start, end]. */
  readonly periods: readonly (readonly [number, number, number])[];
  /** The periods in words. */
  readonly labels: readonly string[];
}

export interface UseChart {
  /** The steps in words: `10% to 20%`. */
  readonly labels: readonly string[];
  /** Upper ends of the steps, for the axis: `20%`. */
  readonly ends: readonly string[];
  readonly callers: readonly number[];
  /** Number of the last labels that are above the limit. */
  readonly over: number;
}

/** Maximum number of points, ticks, groups and rules of a chart. */
const [MAX_STEPS, MAX_TICKS, MAX_GROUPS, MAX_RULES] = [240, 8, 10, 4];
const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];
/** Distances between ticks. */
const TICK_SECONDS = [
  ...[1, 5, 10, 30],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 28, 91, 182, 365, 3650].map((count) => count * DAY),
];

/** Returns the numbers of all charts. */
export function chartData(report: ReplayReport): ChartData {
  const affected = affectedChart(report);
  return {
    denials: denialsChart(report.timeline),
    ...(affected !== undefined && { affected }),
    use: chartedRules(report).map(useChart),
  };
}

/** Returns the start of a timeline, in seconds since 1970. */
export function startOf({ start }: Timeline): number {
  return Date.parse(start) / 1000;
}

function timeAxis(timeline: Timeline): TimeAxis {
  const seconds = timeline.requests.length * timeline.stepSeconds;
  const start = startOf(timeline);
  const distance = TICK_SECONDS.find((each) => seconds / each <= MAX_TICKS) ?? seconds;
  const first = Math.ceil(start / distance) * distance;
  const count = Math.max(0, Math.floor((start + seconds - first) / distance) + 1);
  const ticks = Array.from({ length: count }, (_, at) => {
    const time = first + at * distance;
    return { at: time - start, label: tickLabel(time, distance, seconds) };
  });
  return { seconds, ticks };
}

/** Returns a time of day, or a date on an axis that is longer than a day. */
function tickLabel(time: number, distance: number, seconds: number): string {
  return seconds > DAY && time % DAY === 0 ? shortDate(time) : timeOfDay(time, distance < MINUTE);
}

/** Adds up steps, so that the chart has few enough points. */
function denialsChart(timeline: Timeline): DenialsChart {
  const each = Math.max(1, Math.ceil(timeline.requests.length / MAX_STEPS));
  const step = each * timeline.stepSeconds;
  const sums = (values: readonly number[]): readonly number[] =>
    Array.from({ length: Math.ceil(values.length / each) }, (_, at) =>
      values.slice(at * each, (at + 1) * each).reduce((sum, value) => sum + value, 0),
    );
  const after = sums(timeline.deniedAfter);
  const start = startOf(timeline);
  const labels = after.map((_, at) => periodText(start + at * step, start + (at + 1) * step));
  return { ...timeAxis(timeline), step, labels, before: sums(timeline.deniedBefore), after };
}

/** Returns the steps as periods without gaps: [first step, step after the last one]. */
export function periodsOf(steps: readonly number[]): readonly (readonly [number, number])[] {
  const periods: [number, number][] = [];
  for (const step of steps) {
    const last = periods.at(-1);
    if (last !== undefined && last[1] === step) last[1] = step + 1;
    else periods.push([step, step + 1]);
  }
  return periods;
}

function affectedChart({ groups, timeline }: ReplayReport): AffectedChart | undefined {
  const shown = (groups?.shown ?? []).filter(({ newlyDenied }) => newlyDenied.most > 0).slice(0, MAX_GROUPS);
  if (shown.length === 0) return undefined;
  const start = startOf(timeline);
  const periods = shown.flatMap((group, index) =>
    periodsOf(group.deniedSteps).map(
      ([from, to]) => [index, from * timeline.stepSeconds, to * timeline.stepSeconds] as const,
    ),
  );
  return {
    ...timeAxis(timeline),
    names: shown.map(({ value }) => shownName(value)),
    periods,
    labels: periods.map(([, from, to]) => periodText(start + from, start + to)),
  };
}

/** Returns the rules whose use a chart shows: those that newly deny most, of the rules that know their use. */
export function chartedRules({ rules }: ReplayReport): readonly RuleReport[] {
  return rules.filter(({ use }) => use.some(({ callers }) => callers > 0)).slice(0, MAX_RULES);
}

function useChart({ use }: RuleReport): UseChart {
  return {
    labels: use.map(({ upTo }, at) => {
      const above = use[at - 1]?.upTo ?? 0;
      return upTo === undefined ? `over ${shareText(above)}` : `${shareText(above)} to ${shareText(upTo)}`;
    }),
    ends: use.map(({ upTo }) => (upTo === undefined ? 'more' : shareText(upTo))),
    callers: use.map(({ callers }) => callers),
    over: use.filter(({ upTo }) => upTo === undefined || upTo > 1).length,
  };
}
