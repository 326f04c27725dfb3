import type { Family, FamilyHead, TakeSample } from '../../telemetry/family.js';
import type { MetricsPart, Sample } from './calls.js';

/** Maximum number of samples in a part. */
const SAMPLES_PER_PART = 1000;

/** Sends families in parts. `sendPart` resolves once a part is sent. */
export async function sendFamilies(
  of: MetricsPart['of'],
  families: Iterable<Family>,
  sendPart: (part: MetricsPart) => Promise<void>,
): Promise<void> {
  for (const family of families) {
    const { name, help, type, aggregator } = family;
    const head = { name, help, type, aggregator };
    const samples: Sample[] = [];
    family.eachSample((series, value) => samples.push([series, value]));
    // Families without samples are sent, too, for their names and help texts.
    let at = 0;
    do {
      await sendPart({ of, family: head, samples: samples.slice(at, at + SAMPLES_PER_PART) });
      at += SAMPLES_PER_PART;
    } while (at < samples.length);
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

  eachSample(take: TakeSample): void {
    for (const part of this.#parts) for (const [series, value] of part) take(series, value);
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
