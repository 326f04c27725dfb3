import { Random } from '../../fuzz/random.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type Bucket, FAILURE_POLICIES, makeBuckets, policyOf } from '../calls/buckets.js';
import { type Answered, Caller } from '../calls/caller.js';
import { Ledger } from '../calls/ledger.js';
import type { RedisNode } from '../topology/redis-node.js';
import type { Topology } from '../topology/topology.js';
import { Lateness } from './deadline-check.js';
import { Decisions } from './decision-times.js';
import { WeirHost } from './monitored-weir.js';

/** Envoy's usual deadline, and the deadline of a patient caller, in milliseconds. */
const DEADLINES_MS = [20, 250];
const TICK_MS = 4;
const READ_EVERY_TICKS = 25;
const SETTLE_MS = 10_000;
/** Time after which weir considers a silent Redis hung. */
const REDIS_TIMEOUT = '300ms';
/** Maximum number of failures listed in full; further ones are only counted. */
const NAMED = 30;

/** Counts since a time. */
export interface Counts {
  calls: number;
  late: number;
  /** Answered by `on_store_failure`. */
  byPolicy: number;
  /** OVER_LIMIT without a decision, because there was no time or capacity, although Redis was available. */
  unseen: number;
  latestMs: number;
  /** Calls of patient callers for buckets that the fault does not touch, and those of them that were not decided. */
  elsewhere: number;
  readonly elsewhereUndecided: string[];
}

const nothing = (): Counts => ({
  ...{ calls: 0, late: 0, byPolicy: 0, unseen: 0, latestMs: 0 },
  ...{ elsewhere: 0, elsewhereUndecided: [] },
});

/** Two weirs in front of one topology, callers that never stop, and checks of every answer. */
export class Scene<T extends Topology = Topology> {
  readonly topology: T;
  readonly hosts: readonly WeirHost[];
  readonly lateness = new Lateness();
  /** Failures, in sentences. */
  readonly wrongs: string[] = [];
  counts = nothing();
  private readonly ledgers = new Map<string, Ledger>();
  private readonly callers: Caller[] = [];
  /** What connections of callers had decisions of Redis on. */
  private readonly decisions = new Decisions();
  private readonly byPort = new Map<number, Caller>();
  private struck: ReadonlySet<string> = new Set();
  private windowMs = 0;
  private pace: NodeJS.Timeout | undefined;
  private ticks = 0;
  /** Which Redis was promoted to decide about a bucket: see {@link notePromotion}. */
  private promoted = new Map<string, RedisNode>();
  private tickMs = 0;
  /** Longest delay of this process since {@link startWindow}. */
  heldUpMs = 0;

  private constructor(topology: T, hosts: readonly WeirHost[], buckets: readonly Bucket[]) {
    this.topology = topology;
    this.hosts = hosts;
    for (const bucket of buckets) this.ledgers.set(bucket.name, new Ledger(bucket));
  }

  /** Starts the servers and the calls; `everyMs` is the time between two calls of a caller. */
  static async start<T extends Topology>(topology: T, seed: number, everyMs: number): Promise<Scene<T>> {
    // For each weir and each deadline one caller of `error`, and one of each other policy for each weir.
    const callers = [0, 1].flatMap((host) => [
      ...DEADLINES_MS.map((deadlineMs) => ({ host, deadlineMs, policy: 'error' as const })),
      ...FAILURE_POLICIES.slice(1).map((policy, at) => ({
        host,
        deadlineMs: DEADLINES_MS[at % 2] as number,
        policy,
      })),
    ]);
    const buckets = makeBuckets(callers.map(({ policy }) => policy));
    const policy = policyOf(buckets);
    const env = { REDIS_TIMEOUT, ...topology.env };
    const hosts = [
      await WeirHost.start('weir', policy, env),
      await WeirHost.start('weir with two workers', policy, { ...env, WORKERS: '2' }),
    ];
    const scene = new Scene(topology, hosts, buckets);
    const sharedSmall = buckets[0] as Bucket;
    const sharedLarge = buckets[1] as Bucket;
    for (const [at, { host, deadlineMs, policy: name }] of callers.entries()) {
      const small = buckets[2 + 2 * at] as Bucket;
      const large = buckets[3 + 2 * at] as Bucket;
      const shapes = [[large], [large], [small], [large, small], [small, large]];
      if (name === 'error')
        shapes.push([large, sharedSmall], [sharedLarge, small], [sharedSmall, large], [small, sharedSmall]);
      const { weir } = hosts[host] as WeirHost;
      const caller = new Caller(
        {
          name: `${hosts[host]?.name}, ${deadlineMs} ms, ${name}`,
          port: weir.grpcPort,
          deadlineMs,
          shapes,
          everyMs,
          connections: name === 'error' ? 2 : 1,
        },
        // Of its own: when its calls go out is not in the hands of the seed.
        new Random(seed + at),
        {
          sent: (asked) => {
            for (const bucket of asked) scene.ledgers.get(bucket.name)?.asked();
          },
          answered: (answered) => scene.answered(answered),
          lost: (one, why) => scene.wrong(`${one.options.name}: the connection to weir was lost: ${why}`),
        },
      );
      await caller.connect();
      for (const port of caller.ports()) scene.byPort.set(port, caller);
      scene.callers.push(caller);
    }
    scene.tickMs = performance.now();
    scene.pace = setInterval(() => scene.tick(), TICK_MS);
    return scene;
  }

  wrong(sentence: string): void {
    if (this.wrongs.length < NAMED) this.wrongs.push(sentence);
    else if (this.wrongs.length === NAMED) this.wrongs.push('and more');
  }

  /** Names of all buckets. */
  get bucketNames(): readonly string[] {
    return [...this.ledgers.keys()];
  }

  /** Only these buckets are struck by the fault: calls for others must be decided. */
  strikes(names: ReadonlySet<string>): void {
    this.struck = names;
  }

  /** Resets the counts. */
  startWindow(): void {
    this.counts = nothing();
    this.windowMs = performance.now();
    this.struck = new Set(this.ledgers.keys());
    this.heldUpMs = 0;
    for (const ledger of this.ledgers.values()) ledger.startWindow();
  }

  /** Tokens admitted beyond capacity and filling since {@link startWindow}, whatever the reason. */
  beyondPlain(): number {
    return [...this.ledgers.values()].reduce((sum, { beyondPlain }) => sum + beyondPlain, 0);
  }

  /** Buckets may be lost from now on: those, or all. */
  loseBuckets(names: ReadonlySet<string> = new Set(this.ledgers.keys())): void {
    for (const name of names) this.ledgers.get(name)?.lose(performance.now());
  }

  /**
   * Looks at what Redis has of the buckets now: from here on none may be lost. Resolves with the tokens that were given
   * back, 0 where none could be.
   */
  async findBuckets(): Promise<number> {
    if (![...this.ledgers.values()].some(({ isOpen }) => isOpen)) return 0;
    let given = 0;
    await this.look((ledger, missing, nowMs) => {
      if (!ledger.isOpen) return;
      const tokens = ledger.found(missing, nowMs);
      // Those that never empty say nothing.
      if (!ledger.bucket.isLarge) given += tokens;
    });
    return given;
  }

  /** Looks at what Redis had of the buckets when it was promoted. */
  async notePromotion(): Promise<void> {
    await this.look((ledger, missing, toMs, fromMs, node, underWay) => {
      if (!ledger.isOpen) return;
      this.promoted.set(ledger.bucket.name, node);
      ledger.promoted(this.topology.isSharded ? missing - underWay : missing, fromMs, toMs);
    });
  }

  /** What was promoted has given no more than it had, if it still decides. */
  async confirmPromotion(): Promise<void> {
    if (this.promoted.size === 0) return;
    const deciders = await this.topology.decidersOf([...this.promoted.keys()]);
    for (const [name, node] of this.promoted) {
      const ledger = this.ledgers.get(name);
      if (ledger === undefined || deciders.get(name) !== node) continue;
      const tooMany = ledger.confirm();
      if (tooMany > 0)
        this.wrong(
          `${ledger.bucket.name} gave ${tooMany.toFixed(2)} tokens more than the promoted Redis had`,
        );
    }
    this.promoted.clear();
  }

  /**
   * Resolves when every connection of the patient callers has had a decision of Redis that was asked for after
   * `sinceMs`, with when the last of them had its first; with undefined when they do not get that far.
   */
  async decidedSince(sinceMs: number): Promise<number | undefined> {
    const patient = this.callers.filter((caller) => isPatient(caller) && caller.options.connections > 1);
    const names = patient.flatMap((caller) => caller.ports().map((_, at) => connectionName(caller, at)));
    // A connection may have decisions of one Redis while another one is not there yet.
    const ofBuckets = this.topology.isSharded ? patient.flatMap(bucketNamesOf) : [];
    return this.decisions.since(sinceMs, names, ofBuckets, SETTLE_MS);
  }

  /** Reads what weir's processes wrote down of their answers. */
  readWatches(): void {
    for (const host of this.hosts) {
      host.watch.read((call) => {
        const caller = this.byPort.get(call.port);
        if (caller === undefined) return;
        const lateMs = this.lateness.lateBy(call, caller.options.deadlineMs);
        if (lateMs === 0) return;
        this.counts.late++;
        this.counts.latestMs = Math.max(this.counts.latestMs, lateMs);
        this.wrong(
          `${caller.options.name}: answered ${lateMs.toFixed(1)} ms after the deadline ` +
            `(${this.lateness.marginMs.toFixed(1)} are let pass); ${call.waitedMs} ms held up by the kernel, ` +
            `ran for ${call.ranMs} ms`,
        );
      });
    }
  }

  /** The longest that a process of weir, or this one, was without a core since then. */
  starvedSince(sinceMonotonicMs: number): number {
    return this.heldUpMs + Math.max(...this.hosts.map(({ watch }) => watch.waitedSince(sinceMonotonicMs)));
  }

  /** Stops the callers, waits for the last answers, and checks logs and metrics. */
  async end(): Promise<void> {
    clearInterval(this.pace);
    try {
      await waitFor(
        'the last answers',
        () => (this.callers.every(({ waiting }) => waiting === 0) ? true : undefined),
        SETTLE_MS,
      );
    } catch {
      const left = this.callers.reduce((sum, { waiting }) => sum + waiting, 0);
      this.wrong(`${left} calls were never answered`);
    }
    this.readWatches();
    for (const host of this.hosts) for (const one of await host.wrongs()) this.wrong(one);
  }

  async stop(): Promise<void> {
    clearInterval(this.pace);
    for (const caller of this.callers) caller.close();
    for (const host of this.hosts) await host.stop();
  }

  private async look(
    at: (
      ledger: Ledger,
      missing: number,
      nowMs: number,
      fromMs: number,
      node: RedisNode,
      underWay: number,
    ) => void,
  ): Promise<void> {
    const deciders = await this.topology.decidersOf([...this.ledgers.keys()]);
    for (const node of new Set(deciders.values())) {
      const fromMs = performance.now();
      const underWay = new Map([...this.ledgers].map(([name, ledger]) => [name, ledger.underWaySince()]));
      const found = await node.buckets();
      const nowMs = performance.now();
      for (const [name, ledger] of this.ledgers) {
        if (deciders.get(name) !== node) continue;
        const { maxTokens, perMs } = ledger.bucket;
        const missing = Math.min(maxTokens, ((found.get(name) ?? 0) / 1000) * perMs);
        at(ledger, missing, nowMs, fromMs, node, underWay.get(name)?.() ?? 0);
      }
    }
  }

  private tick(): void {
    const nowMs = performance.now();
    this.heldUpMs = Math.max(this.heldUpMs, nowMs - this.tickMs - TICK_MS);
    this.tickMs = nowMs;
    for (const caller of this.callers) caller.keepPace(nowMs);
    if (++this.ticks % READ_EVERY_TICKS === 0) this.readWatches();
  }

  private answered({ caller, connection, asked, sentMs, endMs, answer }: Answered): void {
    this.counts.calls++;
    for (const { name } of asked) this.ledgers.get(name)?.answered();
    const who = caller.options.name;
    const isError = asked.every(({ onFailure }) => onFailure === 'error');
    const isElsewhere = isError && isPatient(caller) && asked.every(({ name }) => !this.struck.has(name));
    if (isElsewhere) this.counts.elsewhere++;
    switch (answer.kind) {
      case 'wrong':
        this.wrong(`${who}: ${answer.why}`);
        return;
      case 'admitted':
        for (const bucket of asked) {
          // A local bucket may have decided instead.
          if (bucket.onFailure === 'local') continue;
          const tooMany = this.ledgers.get(bucket.name)?.admit(sentMs, endMs) ?? 0;
          if (tooMany > 0) this.wrong(`${who}: ${bucket.name} gave ${tooMany.toFixed(2)} tokens too many`);
        }
        break;
      case 'denied':
        this.denied(answer.short, who, sentMs);
        // What was taken elsewhere is given back, and lost where the way there is.
        if (this.topology.isSharded) {
          for (const bucket of asked)
            if (!answer.short.includes(bucket)) this.ledgers.get(bucket.name)?.maybe(sentMs, endMs);
        }
        break;
      default:
        if (answer.kind === 'unseen') this.counts.unseen++;
        else this.counts.byPolicy++;
        for (const { name } of asked) {
          this.ledgers.get(name)?.maybe(sentMs, endMs);
          if (isError) this.decisions.miss(`${who} ${name}`, sentMs);
        }
        if (isElsewhere) this.undecidedElsewhere(who, asked, sentMs, endMs);
        return;
    }
    if (!isError) return;
    this.decisions.decide(connectionName(caller, connection), sentMs, endMs);
    for (const { name } of asked) this.decisions.decide(`${who} ${name}`, sentMs, endMs);
  }

  private undecidedElsewhere(who: string, asked: readonly Bucket[], sentMs: number, endMs: number): void {
    const names = asked.map(({ name }) => name).join(' and ');
    const window = `${Math.round(sentMs - this.windowMs)} ms after the fault began`;
    this.counts.elsewhereUndecided.push(
      `${who}: ${names}, asked ${window}, ${Math.round(endMs - sentMs)} ms long`,
    );
  }

  private denied(short: readonly Bucket[], who: string, sentMs: number): void {
    for (const bucket of short) {
      if (bucket.onFailure === 'local') continue;
      if (this.ledgers.get(bucket.name)?.mayDeny(sentMs) !== false) continue;
      // What `deny` answers looks like any other denial.
      if (bucket.onFailure === 'deny') this.counts.byPolicy++;
      else this.wrong(`${who}: ${bucket.name} was denied, and had tokens`);
    }
  }
}

/** Whether it waits for longer than Envoy does by default. */
function isPatient({ options }: Caller): boolean {
  return options.deadlineMs > (DEADLINES_MS[0] as number);
}

/** Names of its buckets, but that of the one that it asks for too seldom. */
function bucketNamesOf({ options }: Caller): string[] {
  const often = options.shapes.filter((shape) => shape.every(({ isLarge }, at) => at === 0 || !isLarge));
  return [...new Set(often.flat())].map(({ name }) => `${options.name} ${name}`);
}

function connectionName(caller: Caller, connection: number): string {
  return `${caller.options.name} ${connection}`;
}
