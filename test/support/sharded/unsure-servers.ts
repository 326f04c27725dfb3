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

/** A call to a server that somebody may still do, or answer. */
export class Call {
  readonly way: Way;
  readonly take: PartitionTake;
  readonly isReturn: boolean;
  /** The server's lifetime in which it was sent. */
  readonly life: number;
  isDone = false;
  isAnswered = false;
  isDropped = false;
  /** What it did, by bucket. */
  readonly entries: { readonly key: string; readonly entry: Entry }[] = [];
  outcomes: readonly TakeOutcome[] = [];
  /** Of a take that was answered: what undoes it, and whether it could not be sent. */
  undoneBy: Call | undefined;
  isSkipped = false;
  resolve: (result: TakeResult) => void = () => {};

  constructor(way: Way, take: PartitionTake, isReturn: boolean) {
    this.way = way;
    this.take = take;
    this.isReturn = isReturn;
    this.life = way.server.life;
  }

  /** Whether the part let the request pass, and the answer arrived. */
  isTaken = false;

  /** Whether it may still be done. */
  get mayBeDone(): boolean {
    return !this.isDone && !this.isDropped && this.life === this.way.server.life;
  }

  /** The server does it. */
  perform(): void {
    this.isDone = true;
    this.outcomes = this.way.server.perform(this);
  }

  /** It is answered as it was done. */
  answer(): void {
    this.isAnswered = true;
    const denied = deniesRequest(this.take.items, this.outcomes);
    this.isTaken = !this.isReturn && !denied;
    this.resolve(this.outcomes);
  }

  /** Nobody answers any more. It may be done later, unless it is dropped. */
  lose(isDropped: boolean): void {
    this.isAnswered = true;
    this.isDropped = isDropped;
    this.resolve(LOST);
  }
}

/** A server that does what it is told to do when the test says so; all its buckets are in memory. */
export class UnsureServer {
  /** Rises when it loses its buckets. */
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

  /** Begins anew, with full buckets; returns what was written down of the old ones, and what they held. */
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

/** The entry of a take that an item of a return undoes: of the same bucket and as many hits, and not undone yet. */
function undoneEntry(call: Call, item: TakeItem): Entry | undefined {
  const taken = call.way.takes.find((take) => take.undoneBy === call);
  const undone = new Set(call.entries.map(({ entry }) => entry.undoes));
  const found = taken?.entries.find(
    ({ key, entry }) =>
      key === item.key && entry.kind === 'take' && entry.hits === item.hits && !undone.has(entry),
  );
  // Nothing is given back that was not taken.
  expectSame(found === undefined, false);
  return found?.entry;
}

/** One process's way to a server. */
export class Way implements Shard {
  readonly server: UnsureServer;
  /** All calls that were sent, and those that may still come to something. */
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
    // The first step; what the second one gave back to callers is theirs.
    const [first] = taken;
    if (first === undefined) throw new Error('gives back what was not taken');
    expectSame([first.undoneBy, first.isSkipped].join(), ',false');
    if (takenOn === undefined || takenOn !== this.connectionEpoch) {
      first.isSkipped = true;
      return 'skipped';
    }
    const call = new Call(this, take, true);
    first.undoneBy = call;
    // A server that has lost its buckets since must not be given them back.
    expectSame(call.life, first.life);
    return (await this.#send(call)) instanceof StorageError ? 'failed' : 'made';
  }

  /** The connection is lost, and what was sent on it is not answered. */
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

/** Where one process finds buckets: the first character of a key is its part, and parts are spread over the ways. */
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
