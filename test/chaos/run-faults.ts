import { Random } from '../fuzz/random.js';
import { waitFor } from '../support/process/wait-for.js';
import type { Fault, FaultContext } from './faults/fault.js';
import { monotonicMs } from './latency/loop-delay-log.js';
import { emptyRow, type Row } from './report/row.js';
import { sleep } from './sleep.js';
import type { LatencySummary } from './testbed/deadline-check.js';
import { Testbed } from './testbed/testbed.js';
import type { Topology } from './topology/topology.js';

/** Maximum time until every connection gets a decision after Redis becomes available. */
const MAX_RECOVERY_MS = 1000;
/**
 * Tolerated share of calls without a decision among the calls that a fault does not affect, because machines sometimes
 * pause.
 */
const MAX_UNDECIDED_SHARE = 0.02;
/** Number of such calls that is always tolerated, in addition to the share. */
const TOLERATED_UNDECIDED = 3;
/** Time between two calls of a caller. */
const CALL_INTERVAL_MS = 40;
const BASELINE_MS = 2000;
const STEADY_MS = 300;

/** Options of a run. */
export interface RunOptions {
  readonly seed: number;
  /** Minimum duration of the run. Each fault is caused at least once, and then again, in a new order each time. */
  readonly ms: number;
  /** Factor for the duration of faults. */
  readonly scale: number;
  /** Selects the faults with this text in their names. */
  readonly only?: string;
  print(line: string): void;
}

/** Results of a run. */
export interface RunResult {
  readonly rows: readonly Row[];
  readonly baseline: LatencySummary;
  /** Descriptions of the failures. */
  readonly failures: readonly string[];
}

/** Starts a topology, and causes its faults in an order that the seed determines. */
export async function runFaults<T extends Topology>(
  start: (random: Random) => Promise<T>,
  faults: readonly Fault<T>[],
  options: RunOptions,
): Promise<RunResult> {
  const topology = await start(new Random(options.seed + 1));
  try {
    const testbed = await Testbed.start(topology, options.seed + 2, CALL_INTERVAL_MS);
    try {
      return await new FaultRun(testbed, faults, options).run();
    } finally {
      await testbed.stop();
    }
  } finally {
    await topology.stop();
  }
}

class FaultRun<T extends Topology> {
  private readonly testbed: Testbed<T>;
  private readonly faults: readonly Fault<T>[];
  private readonly options: RunOptions;
  private readonly rows = new Map<string, Row>();
  private readonly startMs = performance.now();

  constructor(testbed: Testbed<T>, faults: readonly Fault<T>[], options: RunOptions) {
    this.testbed = testbed;
    this.faults = faults;
    this.options = options;
  }

  async run(): Promise<RunResult> {
    const { testbed, options } = this;
    const { only } = options;
    await this.waitForSteadyState();
    await sleep(Math.max(1000, BASELINE_MS * options.scale));
    testbed.readAnswerLogs();
    const baseline = testbed.deadlineCheck.endBaseline();
    options.print(
      `${this.seconds()} ${testbed.topology.name}: latency of ${baseline.calls} calls without faults: ` +
        `${baseline.p50Ms.toFixed(2)} ms (p50), ${baseline.p99Ms.toFixed(2)} ms (p99), ` +
        `${baseline.maxMs.toFixed(2)} ms (maximum)`,
    );
    const wanted = this.faults.filter(({ name }) => only === undefined || name.includes(only));
    const order = new Random(options.seed);
    let round = 0;
    do {
      for (const fault of shuffled(wanted, order)) {
        await this.runFault(fault, round);
        if (performance.now() - this.startMs > options.ms && this.rows.size === wanted.length) break;
      }
      round++;
    } while (performance.now() - this.startMs < options.ms && testbed.failures.length === 0);
    await testbed.end();
    options.print(`${this.seconds()} ${testbed.topology.name}: holds: ${testbed.holds.summary()}`);
    for (const row of this.rows.values()) {
      if (row.effects === 0) testbed.fail(`the fault "${row.fault}" had no visible effect`);
    }
    return { rows: [...this.rows.values()], baseline, failures: testbed.failures };
  }

  private async runFault(fault: Fault<T>, round: number): Promise<void> {
    const { testbed, options } = this;
    // The random choices depend only on the seed, the round and the fault, and not on earlier faults.
    const random = new Random(options.seed + 1000 * round + 100 + this.faults.indexOf(fault));
    const failuresBefore = testbed.failures.length;
    await this.waitForSteadyState();
    testbed.startWindow(fault.name);
    const startMonotonicMs = monotonicMs();
    let availableMs = performance.now();
    if (fault.losesBuckets === true) testbed.markPossiblyLost();
    if (fault.stepsClock === true) testbed.holds.markClockSteps();
    let lostTokens = 0;
    /** Times of the first decisions, by the times at which Redis became available. */
    const decisionTimes = new Map<number, number | undefined>();
    const context: FaultContext<T> = {
      topology: testbed.topology,
      random,
      duration: (fromMs, toMs) => (fromMs + random.below(toMs - fromMs)) * options.scale,
      sleep,
      markAvailable: (atMs = performance.now()) => {
        availableMs = atMs;
      },
      buckets: testbed.bucketNames,
      limitTo: (names) => testbed.limitTo(names),
      markPossiblyLost: (names) => testbed.markPossiblyLost(names),
      measureLoss: async () => {
        lostTokens += await testbed.measureLoss();
      },
      recordPromotion: () => testbed.recordPromotion(),
      waitForDecisions: async () => {
        if (!decisionTimes.has(availableMs))
          decisionTimes.set(availableMs, await testbed.decidedSince(availableMs));
      },
      undecidedCalls: () => testbed.counts.byPolicy + testbed.counts.undecidedDenials,
      stepWeirClock: (offsetMs) => this.stepWeirClock(offsetMs),
    };
    const effects = await fault.run(context);
    await context.waitForDecisions();
    const decidedMs = decisionTimes.get(availableMs);
    await testbed.confirmPromotion();
    lostTokens += await testbed.measureLoss();
    await testbed.holds.checkExpired();
    testbed.readAnswerLogs();
    const recoveryMs = decidedMs === undefined ? Number.POSITIVE_INFINITY : decidedMs - availableMs;
    const waitedMs = testbed.maxCpuWaitSince(startMonotonicMs);
    const maxMs = (fault.maxRecoveryMs ?? MAX_RECOVERY_MS) + waitedMs;
    if (recoveryMs > maxMs) {
      testbed.fail(
        decidedMs === undefined
          ? 'a connection got no decision after Redis became available'
          : `the last connection got its first decision ${Math.round(recoveryMs)} ms after Redis became available`,
      );
    }
    const { counts } = testbed;
    const { unaffected, unaffectedUndecided } = counts;
    const toleratedShare = MAX_UNDECIDED_SHARE + waitedMs / (monotonicMs() - startMonotonicMs);
    if (unaffectedUndecided.length > TOLERATED_UNDECIDED + toleratedShare * unaffected) {
      testbed.fail(
        `${unaffectedUndecided.length} of ${unaffected} calls for buckets on other nodes got no decision, such as ` +
          unaffectedUndecided.slice(0, 5).join('; '),
      );
    }
    const row = this.rowOf(fault);
    row.runs++;
    row.effects += effects;
    row.calls += counts.calls;
    row.late += counts.late;
    row.byPolicy += counts.byPolicy;
    row.undecidedDenials += counts.undecidedDenials;
    row.excessTokens += testbed.excessTokens();
    row.lostTokens += lostTokens;
    row.recoveryMs = Math.max(row.recoveryMs, recoveryMs);
    options.print(
      `${this.seconds()} ${testbed.topology.name}: ${fault.name}: ${effects} ${fault.effect}, ` +
        `${counts.calls} calls, ${counts.late} late, ${counts.byPolicy} by policy, ` +
        `${counts.undecidedDenials} undecided denials, ` +
        (unaffected > 0
          ? `${unaffectedUndecided.length} of ${unaffected} unaffected calls undecided, `
          : '') +
        `${testbed.excessTokens().toFixed(0)} excess tokens (${lostTokens.toFixed(0)} lost), ` +
        `${testbed.holds.excess} excess requests in flight, ` +
        `recovery in ${recoveryMs.toFixed(0)} ms`,
    );
    for (const failure of testbed.failures.slice(failuresBefore)) options.print(`  FAILED: ${failure}`);
    for (let at = failuresBefore; at < testbed.failures.length; at++) {
      testbed.failures[at] = `${testbed.topology.name}, "${fault.name}": ${testbed.failures[at]}`;
    }
  }

  /** Waits until every connection has decisions. */
  private async waitForSteadyState(): Promise<void> {
    await sleep(STEADY_MS * this.options.scale);
    if ((await this.testbed.decidedSince(performance.now())) === undefined) {
      this.testbed.fail('a connection gets no decisions although there is no fault');
    }
  }

  private async stepWeirClock(offsetMs: number): Promise<number> {
    const { weirs } = this.testbed;
    const processes = weirs.reduce((sum, { answerLog }) => sum + answerLog.pids().length, 0);
    const stepped = (): number => weirs.reduce((sum, { answerLog }) => sum + answerLog.clockSteps, 0);
    const before = stepped();
    for (const weir of weirs) weir.stepClock(offsetMs);
    await waitFor('the clocks of weir to step', () => {
      this.testbed.readAnswerLogs();
      return stepped() - before >= processes ? true : undefined;
    });
    return stepped() - before;
  }

  private rowOf({ name, effect }: Fault<T>): Row {
    let row = this.rows.get(name);
    if (row === undefined) {
      row = emptyRow(this.testbed.topology.name, name, effect);
      this.rows.set(name, row);
    }
    return row;
  }

  private seconds(): string {
    return `${((performance.now() - this.startMs) / 1000).toFixed(1)} s`;
  }
}

function shuffled<One>(from: readonly One[], random: Random): One[] {
  const remaining = [...from];
  return Array.from(
    { length: remaining.length },
    () => remaining.splice(random.below(remaining.length), 1)[0] as One,
  );
}
