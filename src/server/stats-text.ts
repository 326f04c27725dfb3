import type { Family, Sample } from '../telemetry/family.js';
import type { ReferenceStats } from '../telemetry/reference/reference-stats.js';
import { sortedByName } from './views/sorted-text.js';
import type { ViewSteps } from './views/view-slices.js';

/** Statistics are taken in such portions between pauses. */
const PORTION = 64;

/** The statistics of one process under the reference's names, as metrics are told and added up. */
export function statFamilies(stats: ReferenceStats): readonly Family[] {
  return [
    { name: 'counters', help: '', type: 'counter', aggregator: 'sum', samples: () => stats.counters() },
    { name: 'gauges', help: '', type: 'gauge', aggregator: 'sum', samples: () => stats.gauges() },
  ];
}

/** What `/stats` shows: lines of `name: value`, sorted by name, numbers of one name added up. */
export function* statsText(families: Iterable<Family>): ViewSteps<string, void> {
  const found: Sample[] = [];
  for (const family of families) {
    for (const sample of family.samples()) {
      if (sample === '') {
        yield '';
        continue;
      }
      found.push(sample);
      if (found.length % PORTION === 0) yield '';
    }
  }
  const sorted = yield* sortedByName(found);
  for (let at = 0; at < sorted.length; ) {
    const [name] = sorted[at] as Sample;
    let sum = 0;
    for (; at < sorted.length && (sorted[at] as Sample)[0] === name; at++) sum += (sorted[at] as Sample)[1];
    yield `${name}: ${sum}\n`;
  }
}
