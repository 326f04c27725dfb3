import type { DemandTable } from './demand-table.js';

const HOUR_SECONDS = 3600;
/** An outlier has at least this many times the use of the next caller that is not an outlier. */
const GAP = 3;
/** An outlier is this many standard deviations above the median, estimated from the median absolute deviation. */
const DEVIATIONS = 3;
/** Least standard deviation of the logarithm of use, so that almost equal callers have no outliers by chance. */
const LEAST_DEVIATION = 0.2;
const DEVIATION_OF_MEDIAN = 1.4826;
/** More callers than this share are a second kind of callers. */
const MAX_SHARE = 0.05;
/** With fewer callers, it is not known what is usual. */
export const LEAST_CALLERS = 10;

export interface Callers {
  readonly wellBehaved: readonly number[];
  /** From the largest use to the smallest. */
  readonly outliers: readonly number[];
}

/**
 * Tells callers apart whose use in their busiest hour is far above that of all others: more than 3 deviations above the
 * median on a logarithmic scale, and behind a gap. An hour is longer than a retry storm.
 */
export function findOutliers(table: DemandTable, series: readonly number[]): Callers {
  const uses = series.map((one) => ({ one, log: Math.log(table.busiest(one, HOUR_SECONDS)) }));
  uses.sort((a, b) => a.log - b.log);
  const from = series.length < LEAST_CALLERS ? series.length : firstOutlier(uses.map(({ log }) => log));
  return {
    wellBehaved: uses.slice(0, from).map(({ one }) => one),
    outliers: uses
      .slice(from)
      .map(({ one }) => one)
      .reverse(),
  };
}

/** Returns the index of the first outlier of ascending numbers, or their count. */
function firstOutlier(logs: readonly number[]): number {
  const middle = median(logs);
  const deviation = median(logs.map((log) => Math.abs(log - middle)).sort((a, b) => a - b));
  const least = middle + DEVIATIONS * Math.max(LEAST_DEVIATION, deviation * DEVIATION_OF_MEDIAN);
  const most = Math.ceil(logs.length * MAX_SHARE);
  const from = logs.findIndex(
    (log, i) => i >= logs.length - most && log > least && log - (logs[i - 1] as number) >= Math.log(GAP),
  );
  return from < 0 ? logs.length : from;
}

function median(ascending: readonly number[]): number {
  return ascending[ascending.length >> 1] ?? 0;
}
