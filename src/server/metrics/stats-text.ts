import type { Family } from '../../telemetry/family.js';
import type { ReferenceStats } from '../../telemetry/reference/reference-stats.js';

/** Returns the statistics of one process, with the reference's names, as metric families that can be aggregated. */
export function statFamilies(stats: ReferenceStats): readonly Family[] {
  return [
    {
      name: 'counters',
      help: '',
      type: 'counter',
      aggregator: 'sum',
      eachSample: (take) => stats.eachCounter(take),
    },
    {
      name: 'gauges',
      help: '',
      type: 'gauge',
      aggregator: 'sum',
      eachSample(take) {
        for (const [name, value] of stats.gauges()) take(name, value);
      },
    },
  ];
}

/** Returns the text of `/stats`: lines of `name: value`, sorted by name. Values with the same name are added up. */
export function statsText(families: Iterable<Family>): string {
  const sums = new Map<string, number>();
  for (const family of families) {
    family.eachSample((name, value) => sums.set(name, (sums.get(name) ?? 0) + value));
  }
  let text = '';
  for (const name of [...sums.keys()].sort()) text += `${name}: ${sums.get(name)}\n`;
  return text;
}
