import { Random } from '../../fuzz/random.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type Bucket, FAILURE_POLICIES, makeBuckets, policyOf } from '../calls/buckets.js';
import { type AnsweredCall, Caller, type CallerEvents } from '../calls/caller.js';
import { Ledger } from '../calls/ledger.js';
import type { PacedClient } from '../calls/paced-client.js';
import { HoldCaller } from '../holds/hold-caller.js';
import { HOLD_BUCKETS, HOLD_RULES } from '../holds/hold-round.js';
import { HoldRounds } from '../holds/hold-rounds.js';
import type { RedisNode } from '../topology/redis-node.js';
import type { Topology } from '../topology/topology.js';
import { noCounts } from './counts.js';
import { DeadlineCheck } from './deadline-check.js';
import { DecisionTimes } from './decision-times.js';
import { MonitoredWeir } from './monitored-weir.js';

/** Envoy's default deadline and a long deadline, in milliseconds. */
const DEADLINES_MS = [20, 250];
/** Calls of each caller that starts and ends requests with holds. */
const HOLD_CALLS = { deadlineMs: 250, intervalMs: 50, connections: 1 };
const TICK_MS = 4;
const READ_EVERY_TICKS = 25;
const SETTLE_TIMEOUT_MS = 30_000;
/** Time after which weir considers a silent Redis hung. */
const REDIS_TIMEOUT = '300ms';
/** Maximum number of listed failures. */
const MAX_LISTED = 30;

/** Two weir servers that share a topology, with callers that send requests continuously. Checks every answer. */
export class Testbed<T extends Topology = Topology> {
  readonly topology: T;
  readonly weirs: readonly MonitoredWeir[];
  readonly deadlineCheck = new DeadlineCheck();
  readonly holds: HoldRounds;
  /** Descriptions of the failures. */
  readonly failures: string[] = [];
  counts = noCounts();
  private readonly ledgers = new Map<string, Ledger>();
  private readonly callers: Caller[] = [];
  private readonly holdCallers: HoldCaller[] = [];
  /** Times of decisions, by connections and by buckets of callers. */
  private readonly decisions = new DecisionTimes();
  private readonly byPort = new Map<number, PacedClient>();
  private affected: ReadonlySet<string> = new Set();
  private windowMs = 0;
  private timer: NodeJS.Timeout | undefined;
  private ticks = 0;
  /** Promoted Redis nodes by the names of the buckets that they serve. */
  private promoted = new Map<string, RedisNode>();
  /** {@link Topology.failoverEpoch} of that promotion. */
  private promotionEpoch: number | undefined;
  private tickMs = 0;
  /** Maximum delay of this process's timer since {@link startWindow}. */
  maxTickDelayMs = 0;

  private constructor(
    topology: T,
    weirs: readonly MonitoredWeir[],
    buckets: readonly Bucket[],
    random: Random,
  ) {
    this.topology = topology;
    this.weirs = weirs;
    const port = (weirs[0] as MonitoredWeir).server.grpcPort;
    this.holds = new HoldRounds(port, topology.isSharded, random, (message) => this.fail(message));
    for (const bucket of buckets) this.ledgers.set(bucket.name, new Ledger(bucket));
  }

  /** Starts the servers and the callers. `intervalMs` is the time between two calls of a caller. */
  static async start<T extends Topology>(topology: T, seed: number, intervalMs: number): Promise<Testbed<T>> {
    // Each weir gets a caller with the policy `error` for each deadline, and a caller for each other failure policy.
    const callers = [0, 1].flatMap((weirIndex) => [
      ...DEADLINES_MS.map((deadlineMs) => ({ weirIndex, deadlineMs, policy: 'error' as const })),
      ...FAILURE_POLICIES.slice(1).map((policy, at) => ({
        weirIndex,
        deadlineMs: DEADLINES_MS[at % 2] as number,
        policy,
      })),
    ]);
    const buckets = makeBuckets(callers.map(({ policy }) => policy));
    const policy = policyOf(buckets, HOLD_RULES);
    const env = { REDIS_TIMEOUT, ...topology.env };
    const weirs = [
      await MonitoredWeir.start('weir', policy, env),
      await MonitoredWeir.start('weir with two workers', policy, { ...env, WORKERS: '2' }),
    ];
    const testbed = new Testbed(topology, weirs, buckets, new Random(seed + callers.length));
    const events: CallerEvents = {
      sent: (requested) => {
        for (const bucket of requested) testbed.ledgers.get(bucket.name)?.callStarted();
      },
      answered: (answered) => testbed.answered(answered),
      connectionLost: ({ options }, reason) =>
        testbed.fail(`${options.name}: lost the connection to weir: ${reason}`),
    };
    const sharedSmall = buckets[0] as Bucket;
    const sharedLarge = buckets[1] as Bucket;
    for (const [at, { weirIndex, deadlineMs, policy: name }] of callers.entries()) {
      const small = buckets[2 + 2 * at] as Bucket;
      const large = buckets[3 + 2 * at] as Bucket;
      const requests = [[large], [large], [small], [large, small], [small, large]];
      if (name === 'error')
        requests.push([large, sharedSmall], [sharedLarge, small], [sharedSmall, large], [small, sharedSmall]);
      const weir = weirs[weirIndex] as MonitoredWeir;
      const caller = new Caller(
        {
          name: `${weir.name}, ${deadlineMs} ms, ${name}`,
          port: weir.server.grpcPort,
          deadlineMs,
          requests,
          intervalMs,
          connections: name === 'error' ? 2 : 1,
        },
        // Each caller has its own generator, because the seed does not determine the order of the calls.
        new Random(seed + at),
        events,
      );
      testbed.callers.push(caller);
    }
    for (const { name, server } of weirs) {
      const options = { name: `${name}, holds`, port: server.grpcPort, ...HOLD_CALLS };
      testbed.holdCallers.push(new HoldCaller(options, new Random(seed), events, testbed.holds));
    }
    for (const client of testbed.clients()) {
      await client.connect();
      for (const port of client.ports()) testbed.byPort.set(port, client);
    }
    testbed.tickMs = performance.now();
    testbed.timer = setInterval(() => testbed.tick(), TICK_MS);
    return testbed;
  }

  fail(message: string): void {
    if (this.failures.length < MAX_LISTED) this.failures.push(message);
    else if (this.failures.length === MAX_LISTED) this.failures.push('further failures are not listed');
  }

  /** Names of all buckets. */
  get bucketNames(): readonly string[] {
    return [...this.ledgers.keys(), ...HOLD_BUCKETS.map(({ name }) => name)];
  }

  /** Declares that the fault affects only these buckets. Calls for other buckets must get decisions. */
  limitTo(names: ReadonlySet<string>): void {
    this.affected = names;
  }

  /** Resets the counts at the start of a fault. */
  startWindow(fault: string): void {
    this.counts = noCounts();
    this.windowMs = performance.now();
    this.affected = new Set(this.bucketNames);
    this.holds.startWindow(fault);
    this.maxTickDelayMs = 0;
    for (const ledger of this.ledgers.values()) ledger.startWindow();
  }

  /** Returns the tokens that buckets allowed beyond capacity and refills since {@link startWindow}, for any reason. */
  excessTokens(): number {
    return [...this.ledgers.values()].reduce((sum, { excessTokens }) => sum + excessTokens, 0);
  }

  /** Marks buckets as possibly lost from now on. */
  markPossiblyLost(names: ReadonlySet<string> = new Set(this.bucketNames)): void {
    for (const name of names) this.ledgers.get(name)?.markPossiblyLost(performance.now());
    this.holds.markPossiblyLost(names);
  }

  /** Compares the buckets in Redis with the takes. Resolves with the number of tokens that Redis lost. */
  async measureLoss(): Promise<number> {
    this.holds.startRound();
    if (![...this.ledgers.values()].some(({ isPossiblyLost }) => isPossiblyLost)) return 0;
    let lost = 0;
    await this.checkBuckets((ledger, missing, nowMs) => {
      if (!ledger.isPossiblyLost) return;
      const tokens = ledger.recordLoss(missing, nowMs);
      // Large buckets never become empty, so their losses have no effect.
      if (!ledger.bucket.isLarge) lost += tokens;
    });
    return lost;
  }

  /** Records the buckets of a Redis node that was just promoted. */
  async recordPromotion(): Promise<void> {
    this.promotionEpoch = await this.topology.failoverEpoch?.();
    await this.checkBuckets((ledger, missing, toMs, fromMs, node, callsInProgress) => {
      if (!ledger.isPossiblyLost) return;
      this.promoted.set(ledger.bucket.name, node);
      ledger.recordPromotion(this.topology.isSharded ? missing - callsInProgress : missing, fromMs, toMs);
    });
    this.holds.startRound();
  }

  /** Checks that promoted nodes that have served their buckets since allowed no more than these buckets contained. */
  async confirmPromotion(): Promise<void> {
    if (this.promoted.size === 0) return;
    const nodes = await this.topology.nodesOf([...this.promoted.keys()]);
    // After a second failover, the node may serve its buckets again, without the takes of the meantime.
    const isOnlyOne = (await this.topology.failoverEpoch?.()) === this.promotionEpoch;
    for (const [name, node] of this.promoted) {
      const ledger = this.ledgers.get(name);
      const stayed = isOnlyOne && nodes.get(name) === node;
      if (!stayed) this.holds.markPossiblyLost(new Set(this.bucketNames));
      if (ledger === undefined || !stayed) continue;
      const excess = ledger.excessAfterPromotion();
      if (excess > 0)
        this.fail(`${name} allowed ${excess.toFixed(2)} tokens more than the promoted Redis had`);
    }
    this.promoted.clear();
  }

  /**
   * Waits until every connection with a long deadline has a decision of a call that was sent after `sinceMs`. Resolves
   * with the time at which the last connection got its first decision, or with undefined after a timeout.
   */
  async decidedSince(sinceMs: number): Promise<number | undefined> {
    const callers = this.callers.filter(
      (caller) => hasLongDeadline(caller) && caller.options.connections > 1,
    );
    const names = callers.flatMap((caller) => caller.ports().map((_, at) => connectionName(caller, at)));
    // With several Redis nodes, a connection may get decisions from one node while another is still unavailable.
    const buckets = this.topology.isSharded ? callers.flatMap(bucketNamesOf) : [];
    return this.decisions.waitForAll(sinceMs, names, buckets, SETTLE_TIMEOUT_MS);
  }

  /** Reads the answer times that weir's processes recorded, and checks them against the deadlines. */
  readAnswerLogs(): void {
    for (const { answerLog } of this.weirs) {
      answerLog.read((call) => {
        const caller = this.byPort.get(call.port);
        if (caller === undefined) return;
        const lateMs = this.deadlineCheck.delayOf(call, caller.options.deadlineMs);
        if (lateMs === 0) return;
        this.counts.late++;
        this.counts.maxLateMs = Math.max(this.counts.maxLateMs, lateMs);
        this.fail(
          `${caller.options.name}: answered ${lateMs.toFixed(1)} ms after the deadline ` +
            `(tolerated: ${this.deadlineCheck.marginMs.toFixed(1)} ms); the thread ran for ${call.ranMs} ms and ` +
            `waited for a core for ${call.waitedMs} ms`,
        );
      });
    }
  }

  /** Returns the maximum time for which this process or a process of weir had no core since `sinceMonotonicMs`. */
  maxCpuWaitSince(sinceMonotonicMs: number): number {
    return (
      this.maxTickDelayMs +
      Math.max(...this.weirs.map(({ answerLog }) => answerLog.maxCpuWaitSince(sinceMonotonicMs)))
    );
  }

  /** Stops the callers, waits for the last answers, and checks logs and metrics. */
  async end(): Promise<void> {
    clearInterval(this.timer);
    try {
      await waitFor(
        'the last answers',
        () => (this.clients().every(({ waiting }) => waiting === 0) ? true : undefined),
        SETTLE_TIMEOUT_MS,
      );
    } catch {
      const unanswered = this.clients().reduce((sum, { waiting }) => sum + waiting, 0);
      this.fail(`${unanswered} calls were never answered`);
    }
    this.readAnswerLogs();
    await this.holds.checkAll();
    for (const weir of this.weirs) for (const failure of await weir.failures()) this.fail(failure);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    for (const client of this.clients()) client.close();
    this.holds.close();
    for (const weir of this.weirs) await weir.stop();
  }

  /** Reads the buckets from Redis, and calls `visit` with the number of tokens that each bucket lacks. */
  private async checkBuckets(
    visit: (
      ledger: Ledger,
      missing: number,
      nowMs: number,
      fromMs: number,
      node: RedisNode,
      callsInProgress: number,
    ) => void,
  ): Promise<void> {
    const nodes = await this.topology.nodesOf([...this.ledgers.keys()]);
    for (const node of new Set(nodes.values())) {
      const fromMs = performance.now();
      const callsInProgress = new Map(
        [...this.ledgers].map(([name, ledger]) => [name, ledger.countCallsInProgress()]),
      );
      const found = await node.buckets();
      const nowMs = performance.now();
      for (const [name, ledger] of this.ledgers) {
        if (nodes.get(name) !== node) continue;
        const { maxTokens, perMs } = ledger.bucket;
        const missing = Math.min(maxTokens, ((found.get(name) ?? 0) / 1000) * perMs);
        visit(ledger, missing, nowMs, fromMs, node, callsInProgress.get(name)?.() ?? 0);
      }
    }
  }

  private clients(): readonly PacedClient[] {
    return [...this.callers, ...this.holdCallers];
  }

  private tick(): void {
    const nowMs = performance.now();
    this.maxTickDelayMs = Math.max(this.maxTickDelayMs, nowMs - this.tickMs - TICK_MS);
    this.tickMs = nowMs;
    for (const client of this.clients()) client.sendDueCalls(nowMs);
    if (++this.ticks % READ_EVERY_TICKS === 0) this.readAnswerLogs();
  }

  private answered({ caller, connection, requested, sentMs, endMs, answer }: AnsweredCall): void {
    this.counts.calls++;
    for (const { name } of requested) this.ledgers.get(name)?.callEnded();
    const callerName = caller.options.name;
    const isError = requested.every(({ onFailure }) => onFailure === 'error');
    const isUnaffected =
      isError && hasLongDeadline(caller) && requested.every(({ name }) => !this.affected.has(name));
    if (isUnaffected) this.counts.unaffected++;
    switch (answer.kind) {
      case 'wrong':
        this.fail(`${callerName}: ${answer.why}`);
        return;
      case 'allowed':
        for (const bucket of requested) {
          // A local bucket may have decided instead of Redis.
          if (bucket.onFailure === 'local') continue;
          const excess = this.ledgers.get(bucket.name)?.recordAllowed(sentMs, endMs) ?? 0;
          if (excess > 0)
            this.fail(`${callerName}: ${bucket.name} allowed ${excess.toFixed(2)} tokens too many`);
        }
        break;
      case 'denied':
        this.denied(answer.empty, callerName, sentMs);
        // weir gives back the tokens that it took from other partitions. They are lost if the give-back fails.
        if (this.topology.isSharded) {
          for (const bucket of requested)
            if (!answer.empty.includes(bucket)) this.ledgers.get(bucket.name)?.recordUncertain(sentMs, endMs);
        }
        break;
      default:
        if (answer.kind === 'undecided-denial') this.counts.undecidedDenials++;
        else this.counts.byPolicy++;
        for (const { name } of requested) {
          this.ledgers.get(name)?.recordUncertain(sentMs, endMs);
          if (isError) this.decisions.recordUndecided(`${callerName} ${name}`, sentMs);
        }
        if (isUnaffected) this.noteUndecided(callerName, requested, sentMs, endMs);
        return;
    }
    if (!isError) return;
    this.decisions.record(connectionName(caller, connection), sentMs, endMs);
    for (const { name } of requested) this.decisions.record(`${callerName} ${name}`, sentMs, endMs);
  }

  private noteUndecided(
    callerName: string,
    requested: readonly Bucket[],
    sentMs: number,
    endMs: number,
  ): void {
    const names = requested.map(({ name }) => name).join(' and ');
    const sent = `sent ${Math.round(sentMs - this.windowMs)} ms after the start of the fault`;
    this.counts.unaffectedUndecided.push(
      `${callerName}: ${names}, ${sent}, answered after ${Math.round(endMs - sentMs)} ms`,
    );
  }

  private denied(empty: readonly Bucket[], callerName: string, sentMs: number): void {
    for (const bucket of empty) {
      if (bucket.onFailure === 'local') continue;
      if (this.ledgers.get(bucket.name)?.mayDeny(sentMs) !== false) continue;
      // The failure policy `deny` gives the same answer as a denial from Redis.
      if (bucket.onFailure === 'deny') this.counts.byPolicy++;
      else this.fail(`${callerName}: ${bucket.name} denied a call although it had tokens`);
    }
  }
}

/** Returns whether the caller's deadline is longer than Envoy's default. */
function hasLongDeadline({ options }: PacedClient): boolean {
  return options.deadlineMs > (DEADLINES_MS[0] as number);
}

/** Returns the names of the caller's buckets, from the requests without a second bucket or with a small one. */
function bucketNamesOf({ options }: Caller): string[] {
  const requests = options.requests.filter((buckets) =>
    buckets.every(({ isLarge }, at) => at === 0 || !isLarge),
  );
  return [...new Set(requests.flat())].map(({ name }) => `${options.name} ${name}`);
}

function connectionName(caller: PacedClient, connection: number): string {
  return `${caller.options.name} ${connection}`;
}
