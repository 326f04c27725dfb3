import type { Family, FamilyHead, Sample } from '../../telemetry/family.js';
import type { ReadSteps } from '../../telemetry/family-registry.js';
import type { FromWorker } from './messages.js';

type Part = Extract<FromWorker, { kind: 'metrics_part' }>;

/** So many samples go into a message. */
const PORTION = 64;

/** Tells families in messages; `send` says when one is on its way. */
export function* tellFamilies(
  of: Part['of'],
  families: Iterable<Family>,
  send: (part: Part) => Promise<void>,
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
      if (samples.length < PORTION) continue;
      yield send({ kind: 'metrics_part', of, family: head, samples });
      samples = [];
    }
    // One without samples is told, too: its name and help text are.
    yield send({ kind: 'metrics_part', of, family: head, samples });
  }
}

/** A family as it was told. */
class WorkerFamily implements Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;
  readonly #portions: (readonly Sample[])[] = [];

  constructor({ name, help, type, aggregator }: FamilyHead) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.aggregator = aggregator;
  }

  add(samples: readonly Sample[]): void {
    this.#portions.push(samples);
  }

  *samples(): Generator<Sample> {
    for (const portion of this.#portions) yield* portion;
  }
}

/** What a worker told of itself in one answer. */
export class WorkerMetrics {
  readonly metrics: WorkerFamily[] = [];
  readonly stats: WorkerFamily[] = [];

  add({ of, family, samples }: Part): void {
    const families = this[of];
    let last = families.at(-1);
    if (last?.name !== family.name) {
      last = new WorkerFamily(family);
      families.push(last);
    }
    last.add(samples);
  }
}

/** A worker that is too busy to tell its metrics, or the next part of them, is shown as it was last. */
const WAIT_MS = 1000;

/** A question that a worker has yet to answer. */
interface Waiting {
  /** A part of the answer came. */
  goesOn(): void;
  done(): void;
}

/** What the primary process knows of a worker's metrics, and what it has asked. */
export class AskedMetrics {
  /** What the worker told last. */
  told = new WorkerMetrics();
  /** What it tells now. */
  #telling = new WorkerMetrics();
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  /** Asks with `send`; resolves when the answer is in `told`, or is waited for no longer. */
  ask(send: (id: number) => void): Promise<void> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve();
      };
      const timer = setTimeout(done, WAIT_MS);
      this.#waiting.set(id, { done, goesOn: () => timer.refresh() });
      send(id);
    });
  }

  add(part: Part): void {
    this.#telling.add(part);
    for (const waiting of this.#waiting.values()) waiting.goesOn();
  }

  /** That was all of the answer to question `id`, and to those before it. */
  end(id: number): void {
    this.told = this.#telling;
    this.#telling = new WorkerMetrics();
    for (const [waitingId, waiting] of this.#waiting) if (waitingId <= id) waiting.done();
  }

  /** Nothing is expected of the worker now. */
  waitNoLonger(): void {
    for (const waiting of this.#waiting.values()) waiting.done();
  }
}
