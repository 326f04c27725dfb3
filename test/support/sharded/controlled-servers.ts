import {
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
import { deniesRequest } from '../../../src/limiter/decide.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type {
  GiveBackResult,
  Partition,
  PartitionTake,
  Shard,
  ShardMap,
} from '../../../src/storage/sharded/shard.js';
import { expectAtMost, expectSame } from '../assert/quick-expect.js';
import type { FakeClock } from '../clock/fake-clock.js';
import { MEMORY } from '../limiter/store-options.js';
import { BucketLedger, type Entry } from './bucket-ledger.js';

const LOST = new StorageError('timeout', 'lost');

/** A call to a server that may still be executed or answered. */
export class Call {
  readonly way: Way;
  readonly take: PartitionTake;
  readonly isReturn: boolean;
  /** Lifetime of the server in which the call was sent. */
  readonly life: number;
  isDone = false;
  isAnswered = false;
  isDropped = false;
  /** Changes made by the call, by bucket. */
  readonly entries: { readonly key: string; readonly entry: Entry }[] = [];
  outcomes: readonly TakeOutcome[] = [];
  /** For an answered take: the call that reverses it, and whether that call could not be sent. */
  undoneBy: Call | undefined;
  isSkipped = false;
  resolve: (result: TakeResult) => void = () => {};

  constructor(way: Way, take: PartitionTake, isReturn: boolean) {
    this.way = way;
    this.take = take;
    this.isReturn = isReturn;
    this.life = way.server.life;
  }

  /** Whether the partition allowed the request, and the answer arrived. */
  isTaken = false;

  /** Whether the call may still be executed. */
  get mayHaveExecuted(): boolean {
    return !this.isDone && !this.isDropped && this.life === this.way.server.life;
  }

  /** Executes the call. */
  perform(): void {
    this.isDone = true;
    this.outcomes = this.way.server.perform(this);
  }

  /** Answers the call with its result. */
  answer(): void {
    this.isAnswered = true;
    const denied = deniesRequest(this.take.items, this.outcomes);
    this.isTaken = !this.isReturn && !denied;
    this.resolve(this.outcomes);
  }

  /** Loses the answer. The call may still be executed later, unless it is dropped. */
  lose(isDropped: boolean): void {
    this.isAnswered = true;
    this.isDropped = isDropped;
    this.resolve(LOST);
  }
}

/** A server that executes calls when the test decides; all its buckets are in memory. */
export class UnsureServer {
  /** Increases when the server loses its buckets. */
  life = 0;
  readonly #clock: FakeClock;
  readonly #countDeniedHits: boolean;
  #memory: MemoryStore;
  readonly ledgers = new Map<string, BucketLedger>();

  constructor(clock: FakeClock, countDeniedHits: boolean) {
    this.#clock = clock;
    this.#countDeniedHits = countDeniedHits;
    this.#memory = this.#fresh();
  }

  /** Restarts with full buckets. Returns the ledgers of the old buckets with their final contents. */
  die(): void {
    this.life++;
    this.#memory = this.#fresh();
    this.ledgers.clear();
  }

  used(key: string, ledger: BucketLedger): number {
    const look = {
      key,
      tagLength: 1,
      rate: ledger.rate,
      hits: 0,
      refund: false,
      enforcement: 'observe',
    } as const;
    return this.#memory.take([look])[0]?.used ?? Number.NaN;
  }

  perform(call: Call): readonly TakeOutcome[] {
    const { items } = call.take;
    const outcomes = this.#memory.take(items);
    const denied = deniesRequest(items, outcomes);
    items.forEach((item, i) => {
      const kind = this.#kindOf(item, outcomes[i] as TakeOutcome, denied, call.isReturn);
      if (kind === undefined || item.hits === 0) return;
      const undone = call.isReturn ? undoneEntry(call, item) : undefined;
      const atMicros = item.rate.byWallClock ? this.#clock.wallMicros() : this.#clock.monotonicMicros();
      const request = call.take.connection;
      const entry = { atMicros, hits: item.hits, kind, request, ...(undone && { undoes: undone }) };
      call.entries.push({ key: item.key, entry });
      this.#ledgerOf(item).entries.push(entry);
    });
    return outcomes;
  }

  #kindOf(
    { rate, refund, enforcement }: TakeItem,
    { limited }: TakeOutcome,
    denied: boolean,
    isReturn: boolean,
  ): Entry['kind'] | undefined {
    const keeps = !denied || enforcement === 'candidate';
    if (isReturn) return 'return';
    if (refund) return keeps ? 'refund' : undefined;
    if (!limited && keeps) return 'take';
    return rate.countsDenied(this.#countDeniedHits) ? 'denied' : undefined;
  }

  #ledgerOf({ key, rate }: TakeItem): BucketLedger {
    let ledger = this.ledgers.get(key);
    if (ledger === undefined) {
      ledger = new BucketLedger(rate);
      this.ledgers.set(key, ledger);
    }
    return ledger;
  }

  #fresh(): MemoryStore {
    return new MemoryStore({ ...MEMORY, clock: this.#clock, countDeniedHits: this.#countDeniedHits });
  }
}

/**
 * Returns the entry of a take that a return item reverses: on the same bucket, with as many hits, and not reversed yet.
 */
function undoneEntry(call: Call, item: TakeItem): Entry | undefined {
  const taken = call.way.takes.find((take) => take.undoneBy === call);
  const undone = new Set(call.entries.map(({ entry }) => entry.undoes));
  const found = taken?.entries.find(
    ({ key, entry }) =>
      key === item.key && entry.kind === 'take' && entry.hits === item.hits && !undone.has(entry),
  );
  // A return must match a take.
  expectSame(found === undefined, false);
  return found?.entry;
}

/** One process's connection to a server. */
export class Way implements Shard {
  readonly server: UnsureServer;
  /** All sent calls, and those that may still have an effect. */
  readonly takes: Call[] = [];
  readonly #pending: Set<Call>;
  connectionEpoch: number | undefined = 1;
  #connections = 1;

  constructor(server: UnsureServer, pending: Set<Call>) {
    this.server = server;
    this.#pending = pending;
  }

  refusal(): StorageError | undefined {
    return this.connectionEpoch === undefined ? LOST : undefined;
  }

  takePartition(take: PartitionTake): TakeResult | Promise<TakeResult> {
    const refusal = this.refusal();
    if (refusal !== undefined) return refusal;
    const call = new Call(this, take, false);
    this.takes.push(call);
    return this.#send(call);
  }

  async giveBackPartition(take: PartitionTake, takenOn: unknown): Promise<GiveBackResult> {
    const taken = this.takes.filter(
      (one) =>
        one.isTaken && one.take.connection === take.connection && one.take.partition === take.partition,
    );
    // Only the first step counts. Refunds in the second step belong to the callers.
    const [first] = taken;
    if (first === undefined) throw new Error('gives back what was not taken');
    expectSame([first.undoneBy, first.isSkipped].join(), ',false');
    if (takenOn === undefined || takenOn !== this.connectionEpoch) {
      first.isSkipped = true;
      return 'skipped';
    }
    const call = new Call(this, take, true);
    first.undoneBy = call;
    // A server that has lost its buckets since must not get the hits back.
    expectSame(call.life, first.life);
    return (await this.#send(call)) instanceof StorageError ? 'failed' : 'made';
  }

  /** Closes the connection. Calls sent on it are not answered. */
  cut(): void {
    this.connectionEpoch = undefined;
    for (const call of this.#pending) {
      if (call.way === this && !call.isAnswered) call.lose(false);
    }
  }

  connect(): void {
    this.connectionEpoch ??= ++this.#connections;
  }

  #send(call: Call): Promise<TakeResult> {
    this.#pending.add(call);
    return new Promise((resolve) => {
      call.resolve = resolve;
    });
  }
}

/**
 * Shard map of one process: the first character of a key is its partition, and partitions are distributed over the
 * connections.
 */
export class WayMap implements ShardMap {
  readonly ways: readonly Way[];

  constructor(ways: readonly Way[]) {
    this.ways = ways;
    expectAtMost(1, ways.length);
  }

  partitionOf({ key }: TakeItem): Partition {
    return key.charAt(0);
  }

  shardOf(part: Partition): Shard {
    return this.ways[String(part).charCodeAt(0) % this.ways.length] as Way;
  }

  async close(): Promise<void> {}
}
