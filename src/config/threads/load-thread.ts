import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  MessageChannel,
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  type Worker,
} from 'node:worker_threads';
import { CALENDARS } from '../../limiter/calendar.js';
import { systemClock } from '../../limiter/clock.js';
import { runInTurns } from '../../runtime/turns.js';
import {
  inEffectOf,
  type LoadedPolicies,
  type LoadOptions,
  type PreviousLoad,
  type PreviousPolicies,
  type ReadPolicies,
} from '../files/load-policies.js';
import type { PolicyPlace } from '../files/policy-paths.js';
import { buildBatches, inBatches, type PolicyItem, specItems } from './policy-transfer.js';
import { messageOf, startThread, type ThreadTask } from './thread.js';

/** Input of the thread. */
export interface LoadTask<Request> {
  readonly request: Request;
  /** Takes the policies. */
  readonly batches: MessagePort;
}

/** Message of the thread: the result of the load without the policies. */
type LoadSummary = Omit<ReadPolicies, 'specs'>;

/**
 * Loads policies in a worker thread. The policies are received and built here batch by batch, so that no decision waits
 * longer than one batch takes. Each load has its own thread, so its memory is freed afterwards and a crash affects only
 * the load.
 */
export class LoadThread<Request> {
  private readonly task: ThreadTask;
  private thread: Worker | undefined;
  private closed = false;

  /** `task` calls {@link sendLoaded}. */
  constructor(task: ThreadTask) {
    this.task = task;
  }

  /**
   * Passes `request`, plain data, to the thread. `previous` is the result of the previous load. Rejects if the load
   * could not run. Only one load may run at a time.
   */
  async load(request: Request, previous: PreviousPolicies | undefined): Promise<LoadedPolicies> {
    const { port1, port2 } = new MessageChannel();
    const data: LoadTask<Request> = { request, batches: port2 };
    const thread = startThread(this.task, data, [port2]);
    this.thread = thread;
    // A reload must not keep the process running, but the first load must.
    if (previous !== undefined) thread.unref();
    const summary = await messageOf<LoadSummary>(thread, this.task).finally(() => {
      this.thread = undefined;
    });
    const { version, secretKeys, ...report } = summary;
    const options = { inEffect: previous?.policySet, compiles: true };
    const domains = await runInTurns(collecting(buildBatches(this.received(port1), options)));
    // Prepare the time zones now, so that neither the first requests nor the first requests of new windows wait for it.
    await runInTurns(CALENDARS.prepare(systemClock.wallMicros()));
    return { policySet: { domains, version }, ...report };
  }

  /** Cancels the running load, which then rejects. */
  close(): void {
    this.closed = true;
    void this.thread?.terminate();
  }

  /** Yields the batches, each of which is copied from the thread only when it is needed. */
  private *received(batches: MessagePort): Generator<readonly PolicyItem[]> {
    for (let next = receiveMessageOnPort(batches); next !== undefined; next = receiveMessageOnPort(batches)) {
      if (this.closed) throw new Error('the loader was closed');
      yield next.message;
    }
    batches.close();
  }
}

/** Collects young objects between the steps that build policies. */
function* collecting<Result>(steps: Generator<void, Result>): Generator<void, Result> {
  const garbage = new MinorCollector();
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) {
    yield;
    garbage.slice();
  }
  return step.value;
}

/** Sends what a thread has read. Runs in the thread. */
export function sendLoaded({ specs, ...summary }: ReadPolicies, batches: MessagePort): void {
  for (const batch of inBatches(specItems(specs, summary.secretKeys))) batches.postMessage(batch);
  parentPort?.postMessage(summary satisfies LoadSummary);
}

/** Number of slices between two collections. The objects of 4 slices take about a millisecond to copy. */
const SLICES = 4;

type Collect = (options: { readonly type: 'minor' }) => void;

/**
 * Returns V8's garbage collection function, which V8 exposes only while a process-wide flag is set. The flag is cleared
 * at once. Undefined if V8 has no such function: V8 then collects on its own, with longer pauses.
 */
function exposeCollector(): Collect | undefined {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('typeof gc === "function" ? gc : undefined');
  setFlagsFromString('--no-expose-gc');
  return typeof gc === 'function' ? (gc as Collect) : undefined;
}

/** Set once, when the first policy is built. */
let exposed: { readonly collect: Collect | undefined } | undefined;

/**
 * Collects young objects while a large policy is built. Nearly all new objects survive, so each collection copies them.
 * V8 would wait until there are 16 MB of them and then pause for more than 10 ms. Frequent small collections take no
 * more time in total (bench: policy-load).
 */
export class MinorCollector {
  private readonly collect: Collect | undefined;
  private slices = 0;

  constructor() {
    exposed ??= { collect: exposeCollector() };
    this.collect = exposed.collect;
  }

  /** Whether V8 exposes the function. */
  get works(): boolean {
    return this.collect !== undefined;
  }

  /** Call after each slice. */
  slice(): void {
    if (++this.slices % SLICES === 0) this.collect?.({ type: 'minor' });
  }
}

/** Loads policies while this thread continues. */
export interface PolicyLoader {
  /**
   * Loads the policies once. `previous` is the result of the previous load, whose policies stay for invalid or
   * unchanged domains. Rejects if the load could not run. Errors in the files are part of the result. Only one load may
   * run at a time.
   */
  load(previous?: PreviousPolicies): Promise<LoadedPolicies>;
  /** Cancels the running load, which then rejects. */
  close(): void;
}

/** Request to the thread, as plain data. */
export interface LoadRequest {
  readonly places: readonly PolicyPlace[];
  readonly options: LoadOptions;
  readonly before: PreviousLoad;
}

/** Reads, parses and checks policies in a worker thread; see {@link LoadThread}. */
export class ThreadPolicyLoader implements PolicyLoader {
  private readonly places: readonly PolicyPlace[];
  private readonly options: LoadOptions;
  private readonly rows: () => LoadOptions['rows'];
  private readonly thread = new LoadThread<LoadRequest>('loads policies');

  /** `rows` returns {@link LoadOptions.rows} for the next load. */
  constructor(
    places: readonly PolicyPlace[],
    options: LoadOptions = {},
    rows: () => LoadOptions['rows'] = () => undefined,
  ) {
    this.places = places;
    this.options = options;
    this.rows = rows;
  }

  load(previous?: PreviousPolicies): Promise<LoadedPolicies> {
    const rows = this.rows();
    const options = rows === undefined ? this.options : { ...this.options, rows };
    return this.thread.load({ places: this.places, options, before: inEffectOf(previous) }, previous);
  }

  close(): void {
    this.thread.close();
  }
}
