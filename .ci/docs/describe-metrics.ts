import {
  FAMILIES,
  type FamilyDescription,
  type FamilyName,
  type LabelMeanings,
} from '../../src/telemetry/families.js';
import { defaultMapping, MAPPED_LABELS, Mapper } from '../../src/telemetry/mapping/mapper.js';
import { describeStats, type StatDescription } from '../../src/telemetry/reference/reference-stats.js';

/** A metric for the manual. */
export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: LabelMeanings;
}

/** weir's own metrics, those of Node.js apart, whatever the settings. */
export function describeMetrics(): readonly MetricDescription[] {
  return (Object.keys(FAMILIES) as FamilyName[]).map((name) => {
    const { type, help, labels = {} }: FamilyDescription = FAMILIES[name];
    return { name, type, help, labels };
  });
}

/** A statistic of the reference, and its Prometheus metric in the default mapping. */
export interface MappedStatDescription extends StatDescription {
  readonly metric: MetricDescription;
}

/** The statistics of the reference. */
export function describeReference(): readonly MappedStatDescription[] {
  const mapper = new Mapper(defaultMapping(false));
  return describeStats().map((stat) => {
    const { name, type, meaning } = stat;
    const isTimer = type === 'timer';
    // Names cannot contain brackets, so a word replaces each variable part.
    const word = name.replaceAll(/<(\w+)>/g, 'ANY$1');
    const mapped = mapper.map(word, isTimer ? 'observer' : type);
    // Rules of two levels and more have a further label.
    const deeper = mapper.map(word.replace('ANYkey', 'ANYkey.ANYkey'), isTimer ? 'observer' : type);
    const labels = Object.keys({ ...mapped?.labels, ...deeper?.labels });
    return {
      ...stat,
      metric: {
        name: (mapped?.name ?? '').replaceAll(/ANY([a-z]+)/g, '<$1>'),
        type: isTimer ? 'histogram' : type,
        help: meaning,
        labels: Object.fromEntries(labels.map((label) => [label, MAPPED_LABELS[label] ?? { meaning: '' }])),
      },
    };
  });
}
