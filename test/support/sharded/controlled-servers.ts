import { AsyncLocalStorage } from 'node:async_hooks';
import {
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
import { deniesRequest } from '../../../src/limiter/decide.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type {
  Partition,
  PartitionTake,
  RollbackResult,
  Shard,
  ShardMap,
} from '../../../src/storage/sharded/shard.js';
import { expectAtMost, expectSame } from '../assert/quick-expect.js';
import type { FakeClock } from '../clock/fake-clock.js';
import { MEMORY } from '../limiter/store-options.js';
import { BucketLedger, type Entry } from './bucket-ledger.js';

const LOST = new StorageError('timeout', 'lost');

/** The request that a test makes while it runs; its calls belong to it. */
export const currentRequest = new AsyncLocalStorage<unknown>();

/** A call to a server that may still be executed or answered. */
export class ControlledCall {
  readonly link: ServerLink;
  readonly take: PartitionTake;
  /** The {@link currentRequest} that made it. */
  readonly request = currentRequest.getStore();
  readonly isGiveBack: boolean;
  /** Incarnation of the server when the call was sent. */
  readonly incarnation: number;
  isExecuted = false;
  isAnswered = false;
  isDropped = false;
  /** Changes made by the call, by bucket. */
  readonly entries: { readonly key: string; readonly entry: Entry }[] = [];
  outcomes: readonly TakeOutcome[] = [];
  /** For an answered take: the call that reverses it, and whether that call could not be sent. */
  reversedBy: ControlledCall | undefined;
  isSkipped = false;
  resolve: (result: TakeResult) => void = () => {};

  constructor(link: ServerLink, take: PartitionTake, isGiveBack: boolean) {
    this.link = link;
    this.take = take;
    this.isGiveBack = isGiveBack;
    this.incarnation = link.server.incarnation;
  }

  /** Whether the partition allowed the request, and the answer arrived. */
  isTaken = false;

  /** Whether the call may still be executed. */
  get mayBeExecuted(): boolean {
    return !this.isExecuted && !this.isDropped && this.incarnation === this.link.server.incarnation;
  }

  /** Executes the call. */
  execute(): void {
    this.isExecuted = true;
    this.outcomes = this.link.server.execute(this);
  }

  /** Answers the call with its result. */
  answer(): void {
    this.isAnswered = true;
    const denied = deniesRequest(this.take.items, this.outcomes);
    this.isTaken = !this.isGiveBack && !denied;
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
export class ControlledServer {
  /** Number of times that the server has lost its buckets. */
  incarnation = 0;
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
  restartEmpty(): void {
    this.incarnation++;
    this.#memory = this.#fresh();
    this.ledgers.clear();
  }

  used(key: string, ledger: BucketLedger): number {
    const peek = {
      key,
      hashTagLength: 1,
      rate: ledger.rate,
      hits: 0,
      refund: false,
      enforcement: 'observe',
    } as const;
    return this.#memory.take([peek])[0]?.used ?? Number.NaN;
  }

  execute(call: ControlledCall): readonly TakeOutcome[] {
    const { items } = call.take;
    const outcomes = this.#memory.take(items);
    const denied = deniesRequest(items, outcomes);
    items.forEach((take, i) => {
      const kind = this.#kindOf(take, outcomes[i] as TakeOutcome, denied, call.isGiveBack);
      if (kind === undefined || take.hits === 0) return;
      const undone = call.isGiveBack ? undoneEntry(call, take) : undefined;
      const atMicros = take.rate.byWallClock ? this.#clock.wallMicros() : this.#clock.monotonicMicros();
      const { request } = call;
      const entry = { atMicros, hits: take.hits, kind, request, ...(undone && { undoes: undone }) };
      call.entries.push({ key: take.key, entry });
      this.#ledgerOf(take).entries.push(entry);
    });
    return outcomes;
  }

  #kindOf(
    { rate, refund }: Take,
    { overLimit }: TakeOutcome,
    denied: boolean,
    isGiveBack: boolean,
  ): Entry['kind'] | undefined {
    if (isGiveBack) return 'return';
    if (refund) return denied ? undefined : 'refund';
    if (!overLimit && !denied) return 'take';
    return rate.countsDenied(this.#countDeniedHits) ? 'denied' : undefined;
  }

  #ledgerOf({ key, rate }: Take): BucketLedger {
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
function undoneEntry(call: ControlledCall, item: Take): Entry | undefined {
  const taken = call.link.takes.find((take) => take.reversedBy === call);
  const undone = new Set(call.entries.map(({ entry }) => entry.undoes));
  const found = taken?.entries.find(
    ({ key, entry }) =>
      key === item.key && entry.kind === 'take' && entry.hits === item.hits && !undone.has(entry),
  );
  // A give-back must match a take.
  expectSame(found === undefined, false);
  return found?.entry;
}

/** One process's connection to a server. */
export class ServerLink implements Shard {
  readonly server: ControlledServer;
  /** All sent calls, and those that may still have an effect. */
  readonly takes: ControlledCall[] = [];
  readonly #pending: Set<ControlledCall>;
  connectionId: number | undefined = 1;
  #connections = 1;

  constructor(server: ControlledServer, pending: Set<ControlledCall>) {
    this.server = server;
    this.#pending = pending;
  }

  refusal(): StorageError | undefined {
    return this.connectionId === undefined ? LOST : undefined;
  }

  takePartition(take: PartitionTake): TakeResult | Promise<TakeResult> {
    const refusal = this.refusal();
    if (refusal !== undefined) return refusal;
    const call = new ControlledCall(this, take, false);
    this.takes.push(call);
    return this.#send(call);
  }

  async rollBackPartition(take: PartitionTake, epochAtTake: unknown): Promise<RollbackResult> {
    const request = currentRequest.getStore();
    const taken = this.takes.filter(
      (one) => one.isTaken && one.request === request && one.take.partition === take.partition,
    );
    // Only the first step counts. Refunds in the second step belong to the callers.
    const [first] = taken;
    if (first === undefined) throw new Error('gave back hits without a matching take');
    expectSame([first.reversedBy, first.isSkipped].join(), ',false');
    if (epochAtTake === undefined || epochAtTake !== this.connectionId) {
      first.isSkipped = true;
      return 'skipped';
    }
    const call = new ControlledCall(this, take, true);
    first.reversedBy = call;
    // A server that has lost its buckets since must not get the hits back.
    expectSame(call.incarnation, first.incarnation);
    return (await this.#send(call)) instanceof StorageError ? 'failed' : 'made';
  }

  /** Closes the connection. Calls sent on it are not answered. */
  cut(): void {
    this.connectionId = undefined;
    for (const call of this.#pending) {
      if (call.link === this && !call.isAnswered) call.lose(false);
    }
  }

  connect(): void {
    this.connectionId ??= ++this.#connections;
  }

  #send(call: ControlledCall): Promise<TakeResult> {
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
export class LinkMap implements ShardMap {
  readonly links: readonly ServerLink[];

  constructor(links: readonly ServerLink[]) {
    this.links = links;
    expectAtMost(1, links.length);
  }

  partitionOf({ key }: Take): Partition {
    return key.charAt(0);
  }

  shardOf(part: Partition): Shard {
    return this.links[String(part).charCodeAt(0) % this.links.length] as ServerLink;
  }

  async close(): Promise<void> {}
}
