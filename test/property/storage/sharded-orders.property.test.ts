/*
 * A model of requests to several servers. Some processes use the same buckets. Their calls are executed, answered and
 * lost in a random order. No limit is ever exceeded, and tokens are lost only together with calls.
 */
import { test } from '@jest/globals';
import {
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
import { deniesRequest } from '../../../src/limiter/decide.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { turn } from '../../../src/runtime/turns.js';
import { ShardedStore } from '../../../src/storage/sharded/sharded-store.js';
import { expectAtLeast, expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { seededRandom } from '../../support/limiter/seeded-random.js';
import { takeItem } from '../../support/limiter/take-items.js';
import type { BucketLedger, Entry, FinalState } from '../../support/sharded/bucket-ledger.js';
import {
  type ControlledCall,
  ControlledServer,
  currentRequest,
  LinkMap,
  ServerLink,
} from '../../support/sharded/controlled-servers.js';

const ORDERS = 500;
const SERVERS = 3;
const PROCESSES = 3;
const REQUESTS = 14;
const TIMEOUT_MICROS = 1_000_000;

/**
 * Two buckets on each of four partitions. Two partitions share a server. A token takes a whole number of microseconds.
 */
const BUCKETS: readonly (readonly [key: string, rate: Rate])[] = [...'abcd'].flatMap((part, i) => [
  [`${part}t`, tokenBucketRate(2 + i, 1, 1_000_000)],
  [`${part}w`, windowRate('minute', 2 + i)],
]);

interface World {
  /** Calls are lost, connections break, and servers lose their buckets. */
  readonly isLossy: boolean;
  /** Whether time advances while calls are in flight; otherwise, it stops until all calls are settled. */
  readonly timeAdvances: boolean;
  readonly refunds: boolean;
}

interface Request {
  readonly items: readonly Take[];
  result: TakeResult | undefined;
}

/** State of a bucket when its server lost it, or at the end. */
interface Found {
  readonly key: string;
  readonly ledger: BucketLedger;
  readonly used: number;
  readonly atMicros: number;
  /** Whether its server had lost the bucket before, so that no further hits were given back. */
  readonly isLost: boolean;
}

/** The result of one order, for the totals. */
interface Tally {
  admitted: number;
  denied: number;
  failed: number;
  /** Hits that were taken and never given back. */
  lost: number;
  /** Requests that were given back completely, or not. */
  made: number;
  unmade: number;
}

const NOTHING: Tally = { admitted: 0, denied: 0, failed: 0, lost: 0, made: 0, unmade: 0 };

class Order {
  readonly #random: () => number;
  readonly #world: World;
  readonly #clock = new FakeClock();
  readonly #pending = new Set<ControlledCall>();
  readonly #servers: readonly ControlledServer[];
  readonly #maps: readonly LinkMap[];
  readonly #stores: readonly ShardedStore[];
  readonly #countDeniedHits: boolean;
  readonly #requests: Request[] = [];
  readonly #lostBuckets: Found[] = [];
  readonly #tally: Tally;

  constructor(seed: number, world: World, tally: Tally) {
    this.#random = seededRandom(seed);
    this.#world = world;
    this.#tally = tally;
    this.#countDeniedHits = this.#draw(2) === 0;
    this.#servers = Array.from(
      { length: SERVERS },
      () => new ControlledServer(this.#clock, this.#countDeniedHits),
    );
    this.#maps = Array.from(
      { length: PROCESSES },
      () => new LinkMap(this.#servers.map((server) => new ServerLink(server, this.#pending))),
    );
    this.#stores = this.#maps.map(
      (map) =>
        new ShardedStore({
          main: map,
          timeoutMicros: TIMEOUT_MICROS,
          countDeniedHits: this.#countDeniedHits,
          monotonicMicros: () => this.#clock.monotonicMicros(),
        }),
    );
  }

  async run(): Promise<void> {
    while (this.#requests.length < REQUESTS || this.#pending.size > 0) {
      this.#step();
      await turn();
      this.#forget();
    }
    await Promise.all(this.#stores.map((store) => store.close()));
    this.#check();
  }

  #draw(below: number): number {
    return Math.floor(this.#random() * below);
  }

  #one<T>(of: readonly T[]): T {
    return of[this.#draw(of.length)] as T;
  }

  #step(): void {
    const calls = [...this.#pending];
    const { isLossy, timeAdvances } = this.#world;
    const kind = this.#draw(20);
    const canRequest = this.#requests.length < REQUESTS;
    if (kind < 2 && (timeAdvances || calls.length === 0)) this.#clock.advance(this.#draw(1_500_000));
    else if (kind === 2 && isLossy) this.#break();
    else if (canRequest && (kind < 8 || calls.length === 0)) this.#ask();
    else if (calls.length > 0) this.#advanceCall(this.#one(calls));
  }

  /** Executes, answers or loses a call. It may be lost before, together with or after its execution. */
  #advanceCall(call: ControlledCall): void {
    const isLost = this.#world.isLossy && !call.isAnswered && this.#draw(8) === 0;
    if (isLost) call.lose(this.#draw(2) === 0);
    else if (call.mayBeExecuted) call.execute();
    else if (!call.isAnswered) call.answer();
  }

  /** A connection is lost or opened, or a server loses its buckets. */
  #break(): void {
    const link = this.#one(this.#one(this.#maps).links);
    if (link.connectionId === undefined) link.connect();
    else if (this.#draw(4) > 0) link.cut();
    else this.#kill(link.server);
  }

  #kill(server: ControlledServer): void {
    this.#lostBuckets.push(...this.#found(server, true));
    server.restartEmpty();
    for (const { links } of this.#maps) {
      for (const link of links) if (link.server === server) link.cut();
    }
  }

  #ask(): void {
    const takes = Array.from({ length: 1 + this.#draw(4) }, () => this.#item());
    const request: Request = { items: takes, result: undefined };
    this.#requests.push(request);
    const store = this.#one(this.#stores);
    const result = currentRequest.run(request, () => store.take(takes, Infinity));
    void Promise.resolve(result).then((told) => {
      request.result = told;
    });
  }

  #item(): Take {
    const [key, rate] = this.#one(BUCKETS);
    const enforcement = this.#one(['enforce', 'enforce', 'enforce', 'observe', 'quota'] as const);
    const refund = this.#world.refunds && this.#draw(5) === 0;
    return takeItem(key, rate, { hits: this.#draw(4), refund, enforcement });
  }

  /** Removes calls that can no longer have an effect. */
  #forget(): void {
    for (const call of this.#pending) if (call.isAnswered && !call.mayBeExecuted) this.#pending.delete(call);
    for (const call of this.#pending) {
      if (!call.isAnswered && !call.isExecuted && !call.mayBeExecuted) call.lose(true);
    }
  }

  #found(server: ControlledServer, isLost: boolean): Found[] {
    return [...server.ledgers].map(([key, ledger]) => ({
      ...{ key, ledger, isLost, used: server.used(key, ledger) },
      atMicros: ledger.rate.byWallClock ? this.#clock.wallMicros() : this.#clock.monotonicMicros(),
    }));
  }

  #check(): void {
    const calls = this.#maps.flatMap(({ links }) => links.flatMap(({ takes }) => takes));
    const callOf = new Map(calls.flatMap((call) => call.entries.map(({ entry }) => [entry, call] as const)));
    for (const request of this.#requests) this.#checkRequest(request, calls);
    for (const found of [
      ...this.#lostBuckets,
      ...this.#servers.flatMap((server) => this.#found(server, false)),
    ]) {
      const { key, ledger, used, atMicros } = found;
      this.#tally.lost += ledger.check(atMicros, used, (entry) =>
        key.endsWith('~c') ? 'admitted' : this.#fateOf(entry, callOf.get(entry) as ControlledCall, found),
      );
    }
    for (const { rollbackStats } of this.#stores) {
      this.#tally.made += rollbackStats.made;
      this.#tally.unmade += rollbackStats.failed + rollbackStats.skipped;
    }
  }

  /** Expects that refunds are applied at most once, and not at all for a denied request. */
  #checkRequest(request: Request, calls: readonly ControlledCall[]): void {
    const { items, result } = request;
    if (result === undefined) throw new Error('a request was never answered');
    const isError = result instanceof StorageError;
    const isDenied = !isError && deniesRequest(items, result);
    this.#tally[isError ? 'failed' : isDenied ? 'denied' : 'admitted']++;
    const entries = calls.filter((call) => call.request === request).flatMap((call) => call.entries);
    for (const [key] of BUCKETS) {
      const most = items.filter((take) => take.key === key && take.refund && take.hits > 0).length;
      const made = entries.filter((one) => one.key === key && one.entry.kind === 'refund').length;
      if (isError) expectAtMost(made, most);
      else expectSame(made, isDenied ? 0 : most);
    }
  }

  #fateOf(entry: Entry, call: ControlledCall, { ledger, isLost }: Found): FinalState {
    const { items, result } = call.request as Request;
    const isAdmitted =
      !(result instanceof StorageError) && !deniesRequest(items, result as readonly TakeOutcome[]);
    const isReturned = ledger.entries.some(({ undoes }) => undoes === entry);
    // The hits of an allowed request stay taken.
    expectSame(isAdmitted && (isReturned || !call.isTaken), false);
    if (isReturned) return 'returned';
    if (isAdmitted) return 'admitted';
    if (ledger.rate.countsDenied(this.#countDeniedHits)) return 'kept';
    const { isTaken, isSkipped, reversedBy } = call;
    const isExcused = isLost || !isTaken || isSkipped || (reversedBy !== undefined && !reversedBy.isExecuted);
    if (!isExcused) throw new Error('what was taken was not given back');
    return 'lost';
  }
}

const WORLDS: readonly (readonly [name: string, World])[] = [
  ['nothing is lost', { isLossy: false, timeAdvances: false, refunds: false }],
  ['nothing is lost, and callers give back', { isLossy: false, timeAdvances: false, refunds: true }],
  ['nothing is lost while time advances', { isLossy: false, timeAdvances: true, refunds: false }],
  [
    'nothing is lost while time advances, and callers give back',
    { isLossy: false, timeAdvances: true, refunds: true },
  ],
  ['calls are lost', { isLossy: true, timeAdvances: false, refunds: false }],
  [
    'calls are lost while time advances, and callers give back',
    { isLossy: true, timeAdvances: true, refunds: true },
  ],
];

test.each(WORLDS)('no limit is exceeded if %s', async (_, world) => {
  const tally = { ...NOTHING };
  for (let seed = 1; seed <= ORDERS; seed++) {
    try {
      await new Order(seed, world, tally).run();
    } catch (error) {
      throw new Error(`in the order of seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
  // Each possible event must have occurred.
  expectAtLeast(Math.min(tally.admitted, tally.denied, tally.made), ORDERS / 2);
  expectEqual([tally.failed > 0, tally.lost > 0, tally.unmade > 0], Array(3).fill(world.isLossy));
});
