import { sortedIndexes } from '../../http/views/sorted-indexes.js';
import type { ViewSteps } from '../../http/views/view-slices.js';
import type { Family } from '../../telemetry/family.js';
import type { ReferenceStats } from '../../telemetry/reference/reference-stats.js';

/** Number of statistics that are read in one slice. */
const NAMES_PER_SLICE = 64;

/** Returns the statistics of one process, with the reference's names, as metric families that can be aggregated. */
export function statFamilies(stats: ReferenceStats): readonly Family[] {
  return [
    { name: 'counters', help: '', type: 'counter', aggregator: 'sum', samples: () => stats.counters() },
    { name: 'gauges', help: '', type: 'gauge', aggregator: 'sum', samples: () => stats.gauges() },
  ];
}

/** Returns the text of `/stats`: lines of `name: value`, sorted by name. Values with the same name are added up. */
export function* statsText(families: Iterable<Family>): ViewSteps<string, void> {
  const names: string[] = [];
  const values: number[] = [];
  for (const family of families) {
    for (const sample of family.samples()) {
      if (sample === '') {
        yield '';
        continue;
      }
      names.push(sample[0]);
      values.push(sample[1]);
      if (names.length % NAMES_PER_SLICE === 0) yield '';
    }
  }
  const order = yield* sortedIndexes(names);
  for (let at = 0; at < order.length; ) {
    const name = names[order[at] as number] as string;
    let sum = 0;
    for (; at < order.length && names[order[at] as number] === name; at++)
      sum += values[order[at] as number] as number;
    yield `${name}: ${sum}\n`;
  }
}
