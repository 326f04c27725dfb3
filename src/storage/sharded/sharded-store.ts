import { type BucketStore, StorageError, type Take, type TakeResult } from '../../limiter/bucket-store.js';
import { canDeny, divide, join, type PartitionRequest } from './partition-requests.js';
import { type RollbackOptions, type RollbackStats, Rollbacks } from './rollbacks.js';
import type { Partition, Shard, ShardMap, TakeOptions } from './shard.js';

/** Settings of {@link ShardedStore}. */
export interface ShardedStoreOptions extends RollbackOptions {
  /** The servers of all buckets, except the buckets of `perSecond`. */
  readonly main: ShardMap;
  /** The servers of the buckets for which {@link isPerSecond} returns true (REDIS_PERSECOND). */
  readonly perSecond?: ShardMap | undefined;
}

/**
 * Stores buckets on several servers: a cluster, or two Redis servers. If all buckets of a request are in one partition,
 * the request is forwarded unchanged. Otherwise, the parts of the request are sent to all partitions at the same time,
 * and each partition decides its part in one step. The request is denied if one partition denies it, or if all quotas
 * of the request are used up. The hits are then given back to the partitions that have allowed their part
 * (`refundsOf`). The refunds of an allowed request follow in a second step, because other requests may use refunded
 * hits, so that the refund could not be reversed. If a request both takes hits from a bucket and refunds hits to it, it
 * takes the hits first.
 *
 * - If one partition fails, the request fails, unless another partition denies it. If the request were not denied,
 *   callers could bypass available limits by adding an unavailable bucket. The hits are given back to the other
 *   partitions, except refunds and hits that are also counted for denied requests.
 * - Giving back never delays the answer. It is tried only once, because repeating it might give back too much, and not
 *   after the connection on which the hits were taken has been lost. Tokens may therefore be lost, but no tokens are
 *   created. The caller settles the abandoned holds, which it may repeat.
 * - Until the hits are given back, they are missing in the buckets, so other requests may be denied. Tokens that would
 *   have overflowed if the request had not taken them are not given back (`Take.undoAtMicros`).
 */
export class ShardedStore implements BucketStore {
  readonly #options: ShardedStoreOptions;
  readonly #main: ShardMap;
  readonly #perSecond: ShardMap | undefined;
  /** {@link ShardMap.onlyPartition} of the main map, if there is no other map. */
  readonly #onlyPart: Partition | undefined;
  readonly #giveBacks: Rollbacks;

  constructor(options: ShardedStoreOptions) {
    this.#options = options;
    this.#main = options.main;
    this.#perSecond = options.perSecond;
    this.#onlyPart = options.perSecond === undefined ? options.main.onlyPartition : undefined;
    this.#giveBacks = new Rollbacks(options);
  }

  /** Maximum time for a request to several partitions, in microseconds. */
  get timeoutMicros(): number {
    return this.#options.timeoutMicros;
  }

  /** Number of requests whose hits were given back. */
  get rollbackStats(): RollbackStats {
    return this.#giveBacks.stats;
  }

  take(takes: readonly Take[], deadlineMicros: number, mayWait = true): TakeResult | Promise<TakeResult> {
    let map = this.#main;
    let partition = this.#onlyPart;
    if (partition === undefined) {
      map = this.#mapOf(takes[0] as Take);
      partition = map.partitionOf(takes[0] as Take);
      for (let i = 1; i < takes.length; i++) {
        const item = takes[i] as Take;
        if (this.#mapOf(item) !== map || map.partitionOf(item) !== partition) {
          return this.#takeDivided(takes, { deadlineMicros, mayWait });
        }
      }
    }
    const shard = map.shardOf(partition);
    if (shard instanceof StorageError) return shard;
    return shard.takePartition({ partition, items: takes, deadlineMicros, mayWait });
  }

  serverOf(take: Take): unknown {
    const map = this.#mapOf(take);
    return map.shardOf(map.partitionOf(take));
  }

  /**
   * Waits for give-backs, at most for the timeout, and closes the maps. The main map is closed last, because requests
   * that fail when the other map is closed may have taken hits in the main map, which must be given back.
   */
  async close(): Promise<void> {
    await this.#giveBacks.settled();
    await this.#perSecond?.close();
    await this.#main.close();
    // Wait for the give-backs of requests that failed because the map was closed.
    await this.#giveBacks.settled();
  }

  #mapOf(take: Take): ShardMap {
    return this.#perSecond !== undefined && isPerSecond(take) ? this.#perSecond : this.#main;
  }

  async #takeDivided(takes: readonly Take[], callOptions: TakeOptions): Promise<TakeResult> {
    const requests = divide(takes, (take) => this.#mapOf(take));
    if (requests.some(splitsChain)) return new StorageError('rejected', SPLIT_CHAIN);
    const { timeoutMicros, monotonicMicros } = this.#options;
    const deadlineMicros = Math.min(callOptions.deadlineMicros, monotonicMicros() + timeoutMicros);
    noteRefusals(requests, callOptions.mayWait);
    const defersRefunds = takes.some(canDeny);
    // A partition does not know whether the quotas of other partitions are used up.
    const observesQuotas = requests.filter(({ hasQuota }) => hasQuota).length > 1;
    const inFirstStep = (take: Take): Take => {
      if (take.refund) return defersRefunds ? { ...take, hits: 0 } : take;
      return observesQuotas && take.enforcement === 'quota' ? { ...take, enforcement: 'observe' } : take;
    };
    await Promise.all(
      requests.map((request) =>
        request.send({ ...callOptions, deadlineMicros }, request.items.map(inFirstStep)),
      ),
    );
    const rejection = this.#denialOrError(takes, requests);
    if (rejection !== undefined) return rejection;
    const error = defersRefunds
      ? await this.#refund(requests, { ...callOptions, deadlineMicros, mayWait: true })
      : undefined;
    if (error === undefined) return join(takes, requests, ({ outcomes }) => outcomes);
    this.#giveBacks.begin(requests);
    return this.#withAbandoned(error, takes, requests);
  }

  /**
   * If the results so far do not allow the request, starts to give its hits back, and returns the result of the
   * request. Returns undefined if the request is allowed.
   */
  #denialOrError(takes: readonly Take[], requests: readonly PartitionRequest[]): TakeResult | undefined {
    const { countDeniedHits } = this.#options;
    const error = firstError(requests);
    const isDenied = error === undefined ? denyTogether(requests) : requests.some(({ denies }) => denies);
    if (error === undefined && !isDenied) return undefined;
    this.#giveBacks.begin(requests);
    if (error !== undefined && !isDenied) return this.#withAbandoned(error, takes, requests);
    return join(takes, requests, (request) => request.outcomesOfDenial(countDeniedHits));
  }

  /** Returns the error of a request, together with its abandoned holds. */
  #withAbandoned(
    error: StorageError,
    takes: readonly Take[],
    requests: readonly PartitionRequest[],
  ): StorageError {
    const { countDeniedHits } = this.#options;
    const abandoned = join(takes, requests, (request) => request.outcomesOfDenial(countDeniedHits));
    if (!abandoned.some(({ hold }) => hold === 'abandoned')) return error;
    const { reason, message, unsent } = error;
    return new StorageError(reason, message, { cause: error, unsent, abandoned });
  }

  /** Sends the deferred refunds of an allowed request, which is the last step. If a refund fails, returns its error. */
  async #refund(
    requests: readonly PartitionRequest[],
    callOptions: TakeOptions,
  ): Promise<StorageError | undefined> {
    const answers: Promise<void>[] = [];
    let error: StorageError | undefined;
    const note = (request: PartitionRequest, result: TakeResult): void => {
      if (result instanceof StorageError) error ??= result;
      else request.noteRefunds(result);
    };
    for (const request of requests) {
      if (request.shard === undefined) continue;
      const takes = request.items.filter(({ refund }) => refund);
      if (takes.every(({ hits }) => hits === 0)) continue;
      const result = request.shard.takePartition({
        partition: request.partition,
        items: takes,
        ...callOptions,
      });
      if (result instanceof Promise) answers.push(result.then((late) => note(request, late)));
      else note(request, result);
    }
    await Promise.all(answers);
    return error;
  }
}

/** Message for a chain whose slot is migrating to another node of a Redis Cluster. */
const SPLIT_CHAIN =
  'the limits of a chain ("then") may be on different servers, because their slot is migrating; retry later';

/**
 * Returns whether the second Redis stores a bucket. It stores windows of one second. Windows of several seconds are an
 * extension of weir, and stay in the main Redis. Windows with debt also stay there, as do windows in a list of limits,
 * because a denied request must not change them.
 */
export function isPerSecond({ rate }: Pick<Take, 'rate'>): boolean {
  if (rate.kind !== 'window' || rate.unit !== 'second' || rate.multiplier !== 1) return false;
  return rate.maxDebt === 0 && !rate.countsOnlyAllowed;
}

/**
 * Returns whether two limits of a chain (`then`) are in different partitions, so that no single step can decide both.
 */
function splitsChain({ items, indexes }: PartitionRequest): boolean {
  return items.some(
    ({ enforcement }, i) => enforcement === 'spill' && indexes[i + 1] !== (indexes[i] as number) + 1,
  );
}

function denyTogether(requests: readonly PartitionRequest[]): boolean {
  if (requests.some(({ denies }) => denies)) return true;
  return requests.some(({ hasQuota }) => hasQuota) && !requests.some(({ hasQuotaLeft }) => hasQuotaLeft);
}

function firstError(requests: readonly PartitionRequest[]): StorageError | undefined {
  return requests.find(({ error }) => error !== undefined)?.error;
}

/**
 * Refuses the parts of a request whose servers are unavailable. If there are any, also refuses the parts that cannot
 * deny the request, except settlements.
 */
function noteRefusals(requests: readonly PartitionRequest[], mayWait: boolean): void {
  const refusals = new Map<Shard, StorageError | undefined>();
  for (const request of requests) {
    const { shard } = request;
    if (shard === undefined) continue;
    if (!refusals.has(shard)) refusals.set(shard, shard.refusal(mayWait));
    request.refuse(refusals.get(shard));
  }
  const first = firstError(requests);
  if (first === undefined) return;
  for (const request of requests) {
    // Settlements do not depend on each other.
    const isSettlement = request.items[0]?.settles !== undefined;
    if (!isSettlement && !request.items.some(canDeny)) request.refuse(first);
  }
}
