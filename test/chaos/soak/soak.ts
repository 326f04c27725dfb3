import { readdirSync, readFileSync } from 'node:fs';
import { descriptor, request } from '../../attack/wire.js';
import { residentBytes } from '../../bench/cpu.js';
import { TENANT } from '../../bench/load/call-template.js';
import type { LoadResult } from '../../bench/load/load-result.js';
import { runLoadClient } from '../../bench/load/run-load-client.js';
import { Random } from '../../fuzz/random.js';
import { closeLater } from '../../support/process/close-later.js';
import { preloading } from '../../support/process/preload.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import type { Fault, FaultContext } from '../faults/fault.js';
import { LOGIN_FAULTS } from '../faults/login-faults.js';
import { PROCESS_FAULTS } from '../faults/process-faults.js';
import { PROXY_FAULTS } from '../faults/proxy-faults.js';
import { delayAt, monotonicMs, recordingSettings } from '../latency/loop-delay-log.js';
import { sleep } from '../sleep.js';
import { SingleTopology } from '../topology/single-topology.js';

const FAULT_EVERY_MS = 10_000;
const FIRST_CALLS_MS = 1000;
/** Time at the start during which memory may grow; a fifth of the duration of runs under ten minutes. */
const WARM_UP_MS = 120_000;
const MAX_RATE_CALLS = 100_000;
/** Number of tenants. Each tenant has a separate bucket. */
const TENANTS = 5000;
const CONNECTIONS = 16;

/** The policy answers every call with a decision, even during Redis faults. */
const POLICY = `domain: soak
on_store_failure: allow
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s } }
`;
const SETTLE_TIMEOUT_MS = 20_000;
/** Maximum ratio of the memory in the last third to the memory in the first third, after the warm-up. */
const MAX_GROWTH = 1.1;
/** Maximum delay of the event loop in 99 of 100 samples. */
const MAX_DELAY_MS = 10;
const FAULTS: readonly Fault<SingleTopology>[] = [...PROCESS_FAULTS, ...LOGIN_FAULTS, ...PROXY_FAULTS];

/** Options of a soak. */
export interface SoakOptions {
  readonly ms: number;
  readonly seed: number;
  /** Calls per second; half of the maximum rate by default. */
  readonly rate?: number;
  print(line: string): void;
}

/** Runs weir under load, with a fault every ten seconds. Resolves with descriptions of the failures. */
export async function soak(options: SoakOptions): Promise<string[]> {
  const topology = await SingleTopology.start(new Random(options.seed + 1));
  closeLater(topology, () => topology.stop());
  const delays = new TempDir();
  const collections = new TempDir().write('collections', '');
  const recording = recordingSettings(delays.path);
  const collecting = preloading('test/support/weir/collect-garbage.js');
  const weir = await startWeir({
    policy: POLICY,
    env: {
      ...topology.env,
      ...recording,
      NODE_OPTIONS: `${recording['NODE_OPTIONS']} ${collecting}`,
      WEIR_GARBAGE_FILE: collections,
      REDIS_TIMEOUT: '300ms',
    },
  });
  closeLater(weir, () => weir.stop('SIGKILL'));
  return new Soak(topology, weir, delays.path, collections, options).run();
}

class Soak {
  private readonly topology: SingleTopology;
  private readonly weir: WeirServer;
  private readonly delays: string;
  private readonly collections: string;
  private readonly options: SoakOptions;
  private readonly memoryBytes: number[] = [];
  private readonly startMs = performance.now();

  constructor(
    topology: SingleTopology,
    weir: WeirServer,
    delays: string,
    collections: string,
    options: SoakOptions,
  ) {
    this.topology = topology;
    this.weir = weir;
    this.delays = delays;
    this.collections = collections;
    this.options = options;
  }

  async run(): Promise<string[]> {
    const { options, weir } = this;
    const failures: string[] = [];
    const rate = options.rate ?? (await this.measureMaxRate()) / 2;
    options.print(`${rate.toFixed(0)} calls per second, seed ${options.seed}`);
    let isAnswered = false;
    void this.load(Math.ceil((rate * (FIRST_CALLS_MS + options.ms)) / 1000), rate)
      .catch((error: Error) => failures.push(`a call failed: ${error.message}`))
      .then(() => {
        isAnswered = true;
      });
    await sleep(FIRST_CALLS_MS);
    const filesBefore = this.openFiles();
    const warmUpMs = Math.min(WARM_UP_MS, options.ms / 5);
    const startMonotonicMs = monotonicMs();
    await this.runFaults(failures, warmUpMs);
    const delayMs = delayAt(this.delays, startMonotonicMs, 0.99);
    await waitFor('the last answers', () => isAnswered, SETTLE_TIMEOUT_MS).catch(() =>
      failures.push('calls were never answered'),
    );
    await waitFor(
      'closed files',
      () => (this.openFiles() <= filesBefore ? true : undefined),
      SETTLE_TIMEOUT_MS,
    ).catch(() =>
      failures.push(`${filesBefore} files were open before the faults, and ${this.openFiles()} afterwards`),
    );
    const growth = growthOf(this.memoryBytes);
    options.print(
      `memory from ${megabytes(Math.min(...this.memoryBytes))} to ` +
        `${megabytes(Math.max(...this.memoryBytes))} MB, ` +
        `${((growth - 1) * 100).toFixed(1)} % growth from the first to the last third; event loop delay ` +
        `${delayMs.toFixed(1)} ms (p99); open files: ${filesBefore} before, ${this.openFiles()} after`,
    );
    if (growth > MAX_GROWTH) failures.push('the memory of weir grows');
    if (delayMs > MAX_DELAY_MS) failures.push(`the event loop is delayed by ${delayMs.toFixed(1)} ms (p99)`);
    if (!weir.process.isRunning()) failures.push('weir ended');
    return failures;
  }

  /** Resolves with the maximum number of calls per second. */
  private async measureMaxRate(): Promise<number> {
    await this.load(MAX_RATE_CALLS / 4, undefined);
    const { requests, seconds } = await this.load(MAX_RATE_CALLS, undefined);
    this.options.print(`maximum rate: ${(requests / seconds).toFixed(0)} calls per second`);
    return requests / seconds;
  }

  /** Sends calls of many tenants. Rejects after a failed call. */
  private load(requests: number, rate: number | undefined): Promise<LoadResult> {
    return runLoadClient({
      ...{ host: '127.0.0.1', port: this.weir.grpcPort, tls: false, ends: false, requests, rate },
      ...{ connections: CONNECTIONS, streams: 25, tenants: TENANTS, firstTenant: 0 },
      message: request('soak', descriptor(['tenant', TENANT])).toString('base64'),
    });
  }

  private async runFaults(failures: readonly string[], warmUpMs: number): Promise<void> {
    const { options } = this;
    const random = new Random(options.seed);
    const beganMs = performance.now();
    while (performance.now() - beganMs < options.ms && failures.length === 0) {
      const nextMs = performance.now() + FAULT_EVERY_MS;
      const fault = random.pick(FAULTS);
      await fault.run(this.context(random));
      await sleep(Math.max(0, Math.min(nextMs, beganMs + options.ms) - performance.now()));
      const bytes = await this.memoryInUse();
      if (performance.now() - beganMs > warmUpMs) this.memoryBytes.push(bytes);
      options.print(
        `${((performance.now() - this.startMs) / 1000).toFixed(0)} s: ${fault.name}; ${megabytes(bytes)} MB, ` +
          `${this.openFiles()} open files`,
      );
    }
  }

  /** Collects the garbage of weir. Resolves with its resident memory afterwards. */
  private async memoryInUse(): Promise<number> {
    const { process: started } = this.weir;
    const before = readFileSync(this.collections).length;
    started.signal('SIGUSR2');
    await waitFor('the garbage to be collected', () =>
      readFileSync(this.collections).length > before || !started.isRunning() ? true : undefined,
    );
    return residentBytes(started.pid);
  }

  /** Returns a context for faults, without the checks of answers. */
  private context(random: Random): FaultContext<SingleTopology> {
    const nothing = async (): Promise<void> => {};
    return {
      topology: this.topology,
      random,
      duration: (fromMs, toMs) => fromMs + random.below(toMs - fromMs),
      sleep,
      markAvailable: () => {},
      buckets: [],
      limitTo: () => {},
      markPossiblyLost: () => {},
      measureLoss: nothing,
      recordPromotion: nothing,
      waitForDecisions: nothing,
      undecidedCalls: () => 0,
      stepWeirClock: async () => 0,
    };
  }

  private openFiles(): number {
    return readdirSync(`/proc/${this.weir.process.pid}/fd`).length;
  }
}

/** Returns the median of the last third, divided by the median of the first third. */
function growthOf(samples: readonly number[]): number {
  const third = Math.max(1, Math.floor(samples.length / 3));
  const median = (of: readonly number[]): number =>
    [...of].sort((one, other) => one - other)[Math.floor(of.length / 2)] ?? Number.NaN;
  return median(samples.slice(-third)) / median(samples.slice(0, third));
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
