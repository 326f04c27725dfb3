import type { ReferenceStats } from '../telemetry/reference/reference-stats.js';

type Numbers = readonly (readonly [name: string, value: number])[];

/** The statistics of one process. */
export interface ProcessStats {
  readonly counters: Numbers;
  readonly gauges: Numbers;
}

export function statsOf(stats: ReferenceStats): ProcessStats {
  return { counters: stats.counters(), gauges: stats.gauges() };
}

/** The counters of several processes added up: what is left of those that have ended. */
export function endedStats(processes: readonly ProcessStats[]): ProcessStats {
  return { counters: [...added(processes.map(({ counters }) => counters))], gauges: [] };
}

/** What `/stats` shows: lines of `name: value`, sorted by name, numbers of several processes added up. */
export function statsText(processes: readonly ProcessStats[]): string {
  const sums = added(processes.flatMap(({ counters, gauges }) => [counters, gauges]));
  return [...sums.keys()]
    .sort()
    .map((name) => `${name}: ${sums.get(name)}\n`)
    .join('');
}

function added(lists: readonly Numbers[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const numbers of lists) {
    for (const [name, value] of numbers) sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return sums;
}
