import type { Family, FamilyHead, Sample } from '../../telemetry/family.js';
import type { ReadSteps } from '../../telemetry/family-registry.js';
import type { MetricsPart } from './calls.js';

/** Maximum number of samples in a part. */
const SAMPLES_PER_PART = 64;

/** Sends families in parts. `sendPart` resolves once a part is sent. */
export function* sendFamilies(
  of: MetricsPart['of'],
  families: Iterable<Family>,
  sendPart: (part: MetricsPart) => Promise<void>,
): ReadSteps<void> {
  for (const family of families) {
    const { name, help, type, aggregator } = family;
    const head = { name, help, type, aggregator };
    let samples: Sample[] = [];
    for (const sample of family.samples()) {
      if (sample === '') {
        yield '';
        continue;
      }
      samples.push(sample);
      if (samples.length < SAMPLES_PER_PART) continue;
      yield sendPart({ of, family: head, samples });
      samples = [];
    }
    // Families without samples are sent, too, for their names and help texts.
    yield sendPart({ of, family: head, samples });
  }
}

/** A received family. */
class WorkerFamily implements Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;
  readonly #parts: (readonly Sample[])[] = [];

  constructor({ name, help, type, aggregator }: FamilyHead) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.aggregator = aggregator;
  }

  add(samples: readonly Sample[]): void {
    this.#parts.push(samples);
  }

  *samples(): Generator<Sample> {
    for (const part of this.#parts) yield* part;
  }
}

/** Metrics and statistics that a worker sent in one answer. */
export class WorkerMetrics {
  readonly metrics: WorkerFamily[] = [];
  readonly stats: WorkerFamily[] = [];

  add({ of, family, samples }: MetricsPart): void {
    const families = this[of];
    let last = families.at(-1);
    if (last?.name !== family.name) {
      last = new WorkerFamily(family);
      families.push(last);
    }
    last.add(samples);
  }
}
