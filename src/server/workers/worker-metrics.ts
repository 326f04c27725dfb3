import type { Family, FamilyHead } from '../../telemetry/family.js';
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
interface ReceivedFamily extends Family {
  readonly parts: (readonly Sample[])[];
}

/** Metrics and statistics that a worker sent in one answer. */
export class WorkerMetrics {
  readonly metrics: ReceivedFamily[] = [];
  readonly stats: ReceivedFamily[] = [];

  add({ of, family, samples }: MetricsPart): void {
    const families = this[of];
    const last = families.at(-1);
    if (last?.name === family.name) last.parts.push(samples);
    else families.push(receivedFamily(family, [samples]));
  }
}

function receivedFamily(head: FamilyHead, parts: (readonly Sample[])[]): ReceivedFamily {
  return {
    ...head,
    parts,
    eachSample(take) {
      for (const part of parts) for (const [series, value] of part) take(series, value);
    },
  };
}
