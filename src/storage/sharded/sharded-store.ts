import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { runInTurns } from '../../runtime/turns.js';
import { MAX_SMALL_ITEMS } from '../redis/large-take-queue.js';
import { type GiveBackOptions, type GiveBackStats, GiveBacks } from './give-backs.js';
import {
  canDeny,
  divide,
  ITEMS_PER_SLICE,
  inSlices,
  isRefund,
  itemsOfStep,
  join,
  type PartitionRequest,
  possibleDenial,
  type Step,
} from './partition-requests.js';
import type { Partition, Shard, ShardMap, TakeOptions } from './shard.js';

/** Settings of {@link ShardedStore}. */
export interface ShardedStoreOptions extends GiveBackOptions {
  /** Where buckets lie. */
  readonly main: ShardMap;
  /** Where the buckets of {@link isPerSecond} lie instead (REDIS_PERSECOND). */
  readonly perSecond?: ShardMap | undefined;
}

/**
 * Buckets spread over several servers: those of a cluster, those behind a proxy, or two Redis. Requests whose buckets
 * lie on one part go there as they are. A request with buckets on several parts asks all of them at the same time, and
 * is denied if one denies it, or all of its quotas are used up: then those that let it pass are given back what they
 * took (`refundsOf`). Refunds follow in a second step, as nobody could take back what others have taken by then; where
 * a request takes and refunds in one and the same bucket, it takes first.
 *
 * With two Redis, the windows of a second are asked before the others, which are asked only whether they deny the
 * request where the windows do. Windows count the hits of denied requests, so that nothing has to be given back there.
 * - With `countDeniedHits` off they are only looked at first, and counted once all others let the request pass. Between
 *   the two steps others may use up a window: then the others are given back what they took.
 * - Candidates count and give back whatever comes of the request, so they are asked in the first step only.
 *
 * - An error of one part is the request's, unless another part denies it: a caller who names a bucket that cannot be
 *   asked must not get round the limits that can. The others are given back what they took; what was counted for a
 *   denied request, and what was refunded, stays. Where a part has no server, or one that would refuse, the others are
 *   asked only whether they deny the request, and take nothing.
 * - Giving back never makes the answer wait, and is tried once: a second time might give back more than was taken. Nor
 *   is it tried once the connection was lost on which it was taken. So tokens may be lost, but none are created.
 * - In between others see the buckets without these tokens, and may be denied for that. What a bucket would have
 *   spilled by then it is not given back (`TakeItem.undoMark`).
 */
export class ShardedStore implements BucketStore {
  readonly #options: ShardedStoreOptions;
  readonly #main: ShardMap;
  readonly #perSecond: ShardMap | undefined;
  /** {@link ShardMap.onlyPartition}, where there is one map. */
  readonly #onlyPart: Partition | undefined;
  readonly #giveBacks: GiveBacks;

  constructor(options: ShardedStoreOptions) {
    this.#options = options;
    this.#main = options.main;
    this.#perSecond = options.perSecond;
    this.#onlyPart = options.perSecond === undefined ? options.main.onlyPartition : undefined;
    this.#giveBacks = new GiveBacks(options);
  }

  /** Longest that a request to several parts may take, microseconds. */
  get timeoutMicros(): number {
    return this.#options.timeoutMicros;
  }

  /** Requests that were given back what some parts had taken for them. */
  get giveBackStats(): GiveBackStats {
    return this.#giveBacks.stats;
  }

  take(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection?: unknown,
    mayWait = true,
  ): TakeResult | Promise<TakeResult> {
    const isLarge = items.length > MAX_SMALL_ITEMS;
    let map = this.#main;
    let partition = this.#onlyPart;
    if (partition === undefined) {
      // Divided in turns, wherever they lie.
      if (items.length > ITEMS_PER_SLICE) {
        return this.#takeDivided(items, { deadlineMicros, connection, mayWait, isLarge });
      }
      map = this.#mapOf(items[0] as TakeItem);
      partition = map.partitionOf(items[0] as TakeItem);
      for (let i = 1; i < items.length; i++) {
        const item = items[i] as TakeItem;
        if (this.#mapOf(item) !== map || map.partitionOf(item) !== partition) {
          return this.#takeDivided(items, { deadlineMicros, connection, mayWait, isLarge });
        }
      }
    }
    const shard = map.shardOf(partition);
    if (shard instanceof StorageError) return shard;
    return shard.takePartition({
      partition,
      items,
      deadlineMicros,
      connection,
      mayWait,
      isLarge,
    });
  }

  /**
   * Waits for what is given back, for the timeout at most, and closes the maps; that of the others last, as it is given
   * back what it took for requests that end with the one of windows.
   */
  async close(): Promise<void> {
    await this.#giveBacks.settled();
    await this.#perSecond?.close();
    await this.#main.close();
    // Of requests that ended with that.
    await this.#giveBacks.settled();
  }

  #mapOf(item: TakeItem): ShardMap {
    return this.#perSecond !== undefined && isPerSecond(item) ? this.#perSecond : this.#main;
  }

  async #takeDivided(items: readonly TakeItem[], callOptions: TakeOptions): Promise<TakeResult> {
    const requests = await runInTurns(divide(items, (item) => this.#mapOf(item)));
    const [only] = requests;
    if (only === undefined || requests.length > 1) return this.#takeFromSeveral(items, requests, callOptions);
    await only.send(callOptions, items);
    return only.result;
  }

  async #takeFromSeveral(
    items: readonly TakeItem[],
    requests: readonly PartitionRequest[],
    callOptions: TakeOptions,
  ): Promise<TakeResult> {
    const { timeoutMicros, countDeniedHits, monotonicMicros } = this.#options;
    const deadlineMicros = Math.min(callOptions.deadlineMicros, monotonicMicros() + timeoutMicros);
    const boundedOptions = { ...callOptions, deadlineMicros };
    const laterOptions = { ...boundedOptions, mayWait: true };
    const refusal = noteRefusals(requests, callOptions.mayWait);
    const { canBeDenied, isCertainlyDenied } = possibleDenial(items);
    if (!canBeDenied) {
      await this.#runStep(requests, boundedOptions, undefined);
      return (
        (await this.#denialOrError(items, requests, callOptions)) ??
        runInTurns(join(items, requests, ({ outcomes }) => outcomes))
      );
    }

    const isDenied = isCertainlyDenied || refusal !== undefined;
    const { first, last } = this.#splitPhases(requests);
    const peeksFirst = first.length > 0 && !countDeniedHits;
    await this.#runStep(first, boundedOptions, {
      defersRefunds: countDeniedHits || first.length > 1,
      watchesQuotas: true,
      isDenied: isDenied || peeksFirst,
    });
    const isCountedLater = peeksFirst && first.some((request) => request.items.some(isNoCandidate));
    const cannotPass = isDenied || firstError(first) !== undefined || denyTogether(first, last);
    await this.#runStep(last, boundedOptions, {
      defersRefunds: isCountedLater || last.length > 1,
      watchesQuotas: first.some(({ hasQuotaLeft }) => hasQuotaLeft) || countQuotaPartitions(last) > 1,
      isDenied: cannotPass,
    });
    let rejection = await this.#denialOrError(items, requests, callOptions);
    if (rejection !== undefined) return rejection;

    if (isCountedLater) {
      await this.#runStep(first, laterOptions, {
        defersRefunds: first.length > 1,
        watchesQuotas: last.some(({ hasQuotaLeft }) => hasQuotaLeft) || countQuotaPartitions(first) > 1,
        isDenied: false,
        selects: isNoCandidate,
      });
      rejection = await this.#denialOrError(items, requests, callOptions);
      if (rejection !== undefined) return rejection;
    }
    const error = await this.#refund(requests, laterOptions);
    if (error === undefined) return runInTurns(join(items, requests, ({ outcomes }) => outcomes));
    this.#giveBacks.begin(requests, callOptions.connection, callOptions.isLarge);
    return error;
  }

  /** Those of a request to two Redis that are asked before the others. */
  #splitPhases(requests: readonly PartitionRequest[]): {
    readonly first: readonly PartitionRequest[];
    readonly last: readonly PartitionRequest[];
  } {
    const first = requests.filter(({ map }) => map === this.#perSecond);
    if (first.length === requests.length) return { first: [], last: requests };
    return { first, last: requests.filter(({ map }) => map === this.#main) };
  }

  /** A step: asks some parts at the same time, and notes what they answer. Undefined: all items as they are. */
  async #runStep(
    requests: readonly PartitionRequest[],
    callOptions: TakeOptions,
    step: Step | undefined,
  ): Promise<void> {
    const { countDeniedHits } = this.#options;
    const answers: (Promise<void> | undefined)[] = [];
    await runInTurns(
      inSlices(requests, (request) => {
        request.defersRefunds = step?.defersRefunds === true;
        const asked = step === undefined ? request.items : itemsOfStep(request.items, step, countDeniedHits);
        answers.push(request.send(callOptions, asked, step?.selects));
      }),
    );
    await Promise.all(answers);
  }

  /**
   * What a request is told that does not pass, by what its parts have answered by now: then it begins to be given back
   * what it took. Undefined where it passes.
   */
  async #denialOrError(
    items: readonly TakeItem[],
    requests: readonly PartitionRequest[],
    { connection, isLarge }: TakeOptions,
  ): Promise<TakeResult | undefined> {
    const { countDeniedHits } = this.#options;
    const error = firstError(requests);
    const isDenied = error === undefined ? denyTogether(requests, []) : requests.some(({ denies }) => denies);
    if (error === undefined && !isDenied) return undefined;
    this.#giveBacks.begin(requests, connection, isLarge);
    if (!isDenied) return error;
    return runInTurns(join(items, requests, (request) => request.outcomesOfDenial(countDeniedHits)));
  }

  /** The last step, of a request that passes: the refunds that wait for it. An error of one that could not be made. */
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
    await runInTurns(
      inSlices(requests, (request) => {
        if (!request.defersRefunds || request.shard === undefined) return;
        const items = request.items.filter(isRefund);
        if (items.every(({ hits }) => hits === 0)) return;
        const result = request.shard.takePartition({ partition: request.partition, items, ...callOptions });
        if (result instanceof Promise) answers.push(result.then((late) => note(request, late)));
        else note(request, result);
      }),
    );
    await Promise.all(answers);
    return error;
  }
}

/**
 * Whether the second Redis keeps it: windows of one second. Those of several are of weir's own format, and lie with the
 * others, as do windows with debt and those of a list of limits, which a denied request does not touch.
 */
export function isPerSecond({ rate }: Pick<TakeItem, 'rate'>): boolean {
  if (rate.kind !== 'window' || rate.unit !== 'second' || rate.multiplier !== 1) return false;
  return rate.maxDebt === 0 && !rate.allOrNothing;
}

function isNoCandidate({ enforcement }: TakeItem): boolean {
  return enforcement !== 'candidate';
}

/** Whether parts that have all decided deny the request. Quotas of `others` that have not have a say, too. */
function denyTogether(requests: readonly PartitionRequest[], others: readonly PartitionRequest[]): boolean {
  if (requests.some(({ denies }) => denies)) return true;
  const decideQuotas = countQuotaPartitions(requests) > 0 && countQuotaPartitions(others) === 0;
  return decideQuotas && !requests.some(({ hasQuotaLeft }) => hasQuotaLeft);
}

/** On how many parts there are quotas. */
function countQuotaPartitions(requests: readonly PartitionRequest[]): number {
  return requests.filter(({ hasQuota }) => hasQuota).length;
}

function firstError(requests: readonly PartitionRequest[]): StorageError | undefined {
  return requests.find(({ error }) => error !== undefined)?.error;
}

/**
 * Notes why parts cannot be asked whose servers would refuse, and what need not be asked then. Returns the first such
 * error.
 */
function noteRefusals(requests: readonly PartitionRequest[], mayWait: boolean): StorageError | undefined {
  const refusals = new Map<Shard, StorageError | undefined>();
  for (const request of requests) {
    const { shard } = request;
    if (shard === undefined) continue;
    if (!refusals.has(shard)) refusals.set(shard, shard.refusal(mayWait));
    request.refuse(refusals.get(shard));
  }
  const first = firstError(requests);
  if (first === undefined) return undefined;
  for (const request of requests) if (!request.items.some(canDeny)) request.refuse(first);
  return first;
}
