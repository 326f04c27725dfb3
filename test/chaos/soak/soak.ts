import { readdirSync, readFileSync } from 'node:fs';
import { residentBytes } from '../../bench/cpu.js';
import { Random } from '../../fuzz/random.js';
import { delayAt, monotonicMs, recordingSettings } from '../../stall/loop-delay-log.js';
import { preloading } from '../../support/process/preload.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import type { Fault, Stage } from '../faults/fault.js';
import { LOGIN_FAULTS } from '../faults/login-faults.js';
import { PROCESS_FAULTS } from '../faults/process-faults.js';
import { PROXY_FAULTS } from '../faults/proxy-faults.js';
import { SingleTopology } from '../topology/single-topology.js';
import { SOAK_POLICY, SoakLoad } from './soak-load.js';

const FAULT_EVERY_MS = 10_000;
const FIRST_CALLS_MS = 1000;
/** How long memory may grow at first, of a run of ten minutes; a fifth of a shorter one. */
const WARM_MS = 120_000;
const SATURATION_MS = 4000;
const SETTLE_MS = 20_000;
/** How much more memory there may be in the last third than in the first, once it is warm. */
const MOST_GROWTH = 1.1;
/** 99 in 100 looks at the event loop find it free within so many milliseconds. */
const MOST_DELAY_MS = 10;
const FAULTS: readonly Fault<SingleTopology>[] = [...PROCESS_FAULTS, ...LOGIN_FAULTS, ...PROXY_FAULTS];

/** How a soak goes on. */
export interface SoakOptions {
  readonly ms: number;
  readonly seed: number;
  /** Calls a second; half of what weir can do if it is not said. */
  readonly rate?: number;
  say(line: string): void;
}

/** Puts a weir under load for long, with a fault every ten seconds. Resolves with what was wrong, in sentences. */
export async function soak(options: SoakOptions): Promise<string[]> {
  const topology = await SingleTopology.start(new Random(options.seed + 1));
  const delays = new TempDir();
  const notes = new TempDir();
  try {
    const collections = notes.write('collections', '');
    const recording = recordingSettings(delays.path);
    const collecting = preloading('test/memory/collect-garbage.js');
    const weir = await startWeir({
      policy: SOAK_POLICY,
      env: {
        ...topology.env,
        ...recording,
        NODE_OPTIONS: `${recording['NODE_OPTIONS']} ${collecting}`,
        WEIR_GARBAGE_FILE: collections,
        REDIS_TIMEOUT: '300ms',
      },
    });
    try {
      return await new Soak(topology, weir, delays.path, collections, options).run();
    } finally {
      await weir.stop('SIGKILL');
    }
  } finally {
    await topology.stop();
    delays.remove();
    notes.remove();
  }
}

class Soak {
  private readonly topology: SingleTopology;
  private readonly weir: WeirServer;
  private readonly delays: string;
  private readonly collections: string;
  private readonly options: SoakOptions;
  private readonly memory: number[] = [];
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
    const wrongs: string[] = [];
    const load = await SoakLoad.connect(weir.grpcPort);
    try {
      const most = options.rate === undefined ? await load.saturation(SATURATION_MS) : undefined;
      const rate = options.rate ?? (most as number) / 2;
      if (most !== undefined) options.say(`weir and Redis decide ${most.toFixed(0)} calls a second at most`);
      options.say(`${rate.toFixed(0)} calls a second, seed ${options.seed}`);
      load.begin(rate);
      await sleep(FIRST_CALLS_MS);
      const filesBefore = this.openFiles();
      const warmMs = Math.min(WARM_MS, options.ms / 5);
      const beganMonotonicMs = monotonicMs();
      await this.faults(load, warmMs);
      const delayMs = delayAt(this.delays, beganMonotonicMs, 0.99);
      load.end();
      await waitFor(
        'the last answers',
        () => (load.sent === load.answers || load.failure !== undefined ? true : undefined),
        SETTLE_MS,
      ).catch(() => wrongs.push(`${load.sent - load.answers} calls were never answered`));
      await waitFor(
        'closed files',
        () => (this.openFiles() <= filesBefore ? true : undefined),
        SETTLE_MS,
      ).catch(() => wrongs.push(`${filesBefore} files were open before, ${this.openFiles()} are after`));
      const growth = growthOf(this.memory);
      options.say(
        `${load.answers} answers, ${load.skipped} calls not sent; memory ` +
          `${megabytes(Math.min(...this.memory))} to ` +
          `${megabytes(Math.max(...this.memory))} MB, ${((growth - 1) * 100).toFixed(1)} % more in the last third ` +
          `than in the first; event loop ${delayMs.toFixed(1)} ms (p99); ${filesBefore} open files before, ` +
          `${this.openFiles()} after`,
      );
      if (load.failure !== undefined) wrongs.push(`a call failed: ${load.failure}`);
      if (growth > MOST_GROWTH) wrongs.push('memory grows');
      if (delayMs > MOST_DELAY_MS) wrongs.push('the event loop is held up');
      if (!weir.process.isRunning()) wrongs.push('weir has ended');
    } finally {
      load.close();
    }
    return wrongs;
  }

  private async faults(load: SoakLoad, warmMs: number): Promise<void> {
    const { options } = this;
    const random = new Random(options.seed);
    const beganMs = performance.now();
    while (performance.now() - beganMs < options.ms && load.failure === undefined) {
      const nextMs = performance.now() + FAULT_EVERY_MS;
      const fault = random.pick(FAULTS);
      await fault.run(this.stage(random));
      await sleep(Math.max(0, Math.min(nextMs, beganMs + options.ms) - performance.now()));
      const bytes = await this.memoryInUse();
      if (performance.now() - beganMs > warmMs) this.memory.push(bytes);
      options.say(
        `${((performance.now() - this.startMs) / 1000).toFixed(0)} s: ${fault.name}; ${load.answers} answers, ` +
          `${load.skipped} not sent, ${megabytes(bytes)} MB, ${this.openFiles()} files`,
      );
    }
  }

  /** Memory of weir in RAM once its garbage is collected. */
  private async memoryInUse(): Promise<number> {
    const { process: started } = this.weir;
    const before = readFileSync(this.collections).length;
    started.signal('SIGUSR2');
    await waitFor('the garbage to be collected', () =>
      readFileSync(this.collections).length > before || !started.isRunning() ? true : undefined,
    );
    return residentBytes(started.pid);
  }

  private stage(random: Random): Stage<SingleTopology> {
    const nothing = async (): Promise<void> => {};
    return {
      topology: this.topology,
      random,
      lasting: (fromMs, toMs) => fromMs + random.below(toMs - fromMs),
      sleep,
      serves: () => {},
      buckets: [],
      strikes: () => {},
      loseBuckets: () => {},
      findBuckets: nothing,
      notePromotion: nothing,
      untilDecided: nothing,
      answeredByPolicy: () => 0,
      stepWeirClock: async () => 0,
    };
  }

  private openFiles(): number {
    return readdirSync(`/proc/${this.weir.process.pid}/fd`).length;
  }
}

/** The median of the last third over that of the first. */
function growthOf(samples: readonly number[]): number {
  const third = Math.max(1, Math.floor(samples.length / 3));
  const median = (of: readonly number[]): number =>
    [...of].sort((one, other) => one - other)[Math.floor(of.length / 2)] ?? Number.NaN;
  return median(samples.slice(-third)) / median(samples.slice(0, third));
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
