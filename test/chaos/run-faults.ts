import { Random } from '../fuzz/random.js';
import { monotonicMs } from '../stall/loop-delay-log.js';
import { waitFor } from '../support/process/wait-for.js';
import type { Fault, Stage } from './faults/fault.js';
import { emptyRow, type Row } from './report/row.js';
import type { Spread } from './testbed/deadline-check.js';
import { Scene } from './testbed/testbed.js';
import type { Topology } from './topology/topology.js';

/** Longest from when Redis serves again to the first decision on each connection. */
export const MOST_RECOVERY_MS = 1000;
/** Of the calls for buckets that a fault does not strike, the share that may be undecided: machines pause at times. */
const MOST_ELSEWHERE = 0.02;
/** So many may be at any rate. */
const FEW_ELSEWHERE = 3;
/** Time between two calls of a caller. */
const EVERY_MS = 40;
const BASELINE_MS = 2000;
const CALM_MS = 300;

/** How a topology is put to its faults. */
export interface RunOptions {
  readonly seed: number;
  /** Each fault is done at least once, and then again in another order until so many milliseconds are over. */
  readonly ms: number;
  /** How long faults last, of what they last in the long form. */
  readonly scale: number;
  /** Of the faults those whose names hold this. */
  readonly only?: string;
  say(line: string): void;
}

/** What a topology went through. */
export interface RunResult {
  readonly rows: readonly Row[];
  readonly baseline: Spread;
  /** What was wrong, in sentences. */
  readonly wrongs: readonly string[];
}

/** Puts one topology to its faults, in an order that the seed says. */
export async function runFaults<T extends Topology>(
  start: (random: Random) => Promise<T>,
  faults: readonly Fault<T>[],
  options: RunOptions,
): Promise<RunResult> {
  const topology = await start(new Random(options.seed + 1));
  try {
    const scene = await Scene.start(topology, options.seed + 2, EVERY_MS);
    try {
      return await new FaultRun(scene, faults, options).run();
    } finally {
      await scene.stop();
    }
  } finally {
    await topology.stop();
  }
}

class FaultRun<T extends Topology> {
  private readonly scene: Scene<T>;
  private readonly faults: readonly Fault<T>[];
  private readonly options: RunOptions;
  private readonly rows = new Map<string, Row>();
  private readonly startMs = performance.now();

  constructor(scene: Scene<T>, faults: readonly Fault<T>[], options: RunOptions) {
    this.scene = scene;
    this.faults = faults;
    this.options = options;
  }

  async run(): Promise<RunResult> {
    const { scene, options } = this;
    const { only } = options;
    await this.calm();
    await sleep(Math.max(1000, BASELINE_MS * options.scale));
    scene.readWatches();
    const baseline = scene.lateness.endBaseline();
    options.say(
      `${this.seconds()} ${scene.topology.name}: without faults weir takes ${baseline.p50Ms.toFixed(2)} ms (p50), ` +
        `${baseline.p99Ms.toFixed(2)} (p99), ${baseline.longestMs.toFixed(2)} (longest) for ${baseline.calls} calls`,
    );
    const wanted = this.faults.filter(({ name }) => only === undefined || name.includes(only));
    const order = new Random(options.seed);
    let round = 0;
    do {
      for (const fault of shuffled(wanted, order)) {
        await this.one(fault, round);
        if (performance.now() - this.startMs > options.ms && this.rows.size === wanted.length) break;
      }
      round++;
    } while (performance.now() - this.startMs < options.ms && scene.wrongs.length === 0);
    await scene.end();
    for (const row of this.rows.values()) {
      if (row.bites === 0) scene.wrong(`"${row.fault}" never bit: it proves nothing`);
    }
    return { rows: [...this.rows.values()], baseline, wrongs: scene.wrongs };
  }

  private async one(fault: Fault<T>, round: number): Promise<void> {
    const { scene, options } = this;
    // The same for the same seed, whatever else was done and however long it took.
    const random = new Random(options.seed + 1000 * round + 100 + this.faults.indexOf(fault));
    const wrongBefore = scene.wrongs.length;
    await this.calm();
    scene.startWindow();
    const beganMonotonicMs = monotonicMs();
    let servesMs = performance.now();
    if (fault.loses === true) scene.loseBuckets();
    let given = 0;
    /** When decisions were back after Redis served again, by when it did. */
    const decided = new Map<number, number | undefined>();
    const stage: Stage<T> = {
      topology: scene.topology,
      random,
      lasting: (fromMs, toMs) => (fromMs + random.below(toMs - fromMs)) * options.scale,
      sleep,
      serves: (atMs = performance.now()) => {
        servesMs = atMs;
      },
      buckets: scene.bucketNames,
      strikes: (names) => scene.strikes(names),
      loseBuckets: (names) => scene.loseBuckets(names),
      findBuckets: async () => {
        given += await scene.findBuckets();
      },
      notePromotion: () => scene.notePromotion(),
      untilDecided: async () => {
        if (!decided.has(servesMs)) decided.set(servesMs, await scene.decidedSince(servesMs));
      },
      answeredByPolicy: () => scene.counts.byPolicy + scene.counts.unseen,
      stepWeirClock: (offsetMs) => this.stepWeirClock(offsetMs),
    };
    const bites = await fault.run(stage);
    await stage.untilDecided();
    const decidedMs = decided.get(servesMs);
    await scene.confirmPromotion();
    given += await scene.findBuckets();
    scene.readWatches();
    const recoveryMs = decidedMs === undefined ? Number.POSITIVE_INFINITY : decidedMs - servesMs;
    const mostMs = (fault.recoveryMs ?? MOST_RECOVERY_MS) + scene.starvedSince(beganMonotonicMs);
    if (recoveryMs > mostMs) {
      const when = decidedMs === undefined ? 'not at all' : `${Math.round(recoveryMs)} ms later`;
      scene.wrong(`Redis served again, and the last connection had its first decision ${when}`);
    }
    const { counts } = scene;
    const { elsewhere, elsewhereUndecided } = counts;
    if (elsewhereUndecided.length > FEW_ELSEWHERE + MOST_ELSEWHERE * elsewhere) {
      scene.wrong(
        `${elsewhereUndecided.length} of ${elsewhere} calls for buckets of other Redises were not decided, such as ` +
          elsewhereUndecided.slice(0, 5).join('; '),
      );
    }
    const row = this.rowOf(fault);
    row.times++;
    row.bites += bites;
    row.calls += counts.calls;
    row.late += counts.late;
    row.byPolicy += counts.byPolicy;
    row.unseen += counts.unseen;
    row.beyond += scene.beyondPlain();
    row.given += given;
    row.recoveryMs = Math.max(row.recoveryMs, recoveryMs);
    options.say(
      `${this.seconds()} ${scene.topology.name}: ${fault.name}: ${bites} ${fault.counts}, ` +
        `${counts.calls} calls, ${counts.late} late, ${counts.byPolicy} by policy, ${counts.unseen} unseen, ` +
        (elsewhere > 0 ? `${elsewhereUndecided.length} of ${elsewhere} elsewhere undecided, ` : '') +
        `${scene.beyondPlain().toFixed(0)} tokens beyond (${given.toFixed(0)} lost), ` +
        `recovered in ${recoveryMs.toFixed(0)} ms`,
    );
    for (const wrong of scene.wrongs.slice(wrongBefore)) options.say(`  FAILS: ${wrong}`);
    for (let at = wrongBefore; at < scene.wrongs.length; at++) {
      scene.wrongs[at] = `${scene.topology.name}, "${fault.name}": ${scene.wrongs[at]}`;
    }
  }

  /** Until every connection has decisions again. */
  private async calm(): Promise<void> {
    await sleep(CALM_MS * this.options.scale);
    if ((await this.scene.decidedSince(performance.now())) === undefined) {
      this.scene.wrong('not every connection has decisions, though nothing is done to Redis');
    }
  }

  private async stepWeirClock(offsetMs: number): Promise<number> {
    const { hosts } = this.scene;
    const processes = hosts.reduce((sum, { watch }) => sum + watch.pids().length, 0);
    const stepped = (): number => hosts.reduce((sum, { watch }) => sum + watch.clockSteps, 0);
    const before = stepped();
    for (const host of hosts) host.stepClock(offsetMs);
    await waitFor('the clocks of weir to step', () => {
      this.scene.readWatches();
      return stepped() - before >= processes ? true : undefined;
    });
    return stepped() - before;
  }

  private rowOf({ name, counts }: Fault<T>): Row {
    let row = this.rows.get(name);
    if (row === undefined) {
      row = emptyRow(this.scene.topology.name, name, counts);
      this.rows.set(name, row);
    }
    return row;
  }

  private seconds(): string {
    return `${((performance.now() - this.startMs) / 1000).toFixed(1)} s`;
  }
}

function shuffled<One>(from: readonly One[], random: Random): One[] {
  const left = [...from];
  return Array.from({ length: left.length }, () => left.splice(random.below(left.length), 1)[0] as One);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
