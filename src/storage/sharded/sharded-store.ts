import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { runInTurns } from '../../runtime/turns.js';
import { NARROW_ITEMS } from '../redis/wide-takes.js';
import { type GiveBackOptions, type GiveBackStats, GiveBacks } from './give-backs.js';
import {
  askedFor,
  canDeny,
  divide,
  ITEMS_OF_A_STRETCH,
  inStretches,
  isRefund,
  join,
  outlookOf,
  type RequestPart,
  type Step,
} from './request-parts.js';
import type { Asking, Part, Shard, ShardMap } from './shard.js';

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
  /** {@link ShardMap.onlyPart}, where there is one map. */
  readonly #onlyPart: Part | undefined;
  readonly #giveBacks: GiveBacks;

  constructor(options: ShardedStoreOptions) {
    this.#options = options;
    this.#main = options.main;
    this.#perSecond = options.perSecond;
    this.#onlyPart = options.perSecond === undefined ? options.main.onlyPart : undefined;
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
    const wide = items.length > NARROW_ITEMS;
    let map = this.#main;
    let part = this.#onlyPart;
    if (part === undefined) {
      // Divided in turns, wherever they lie.
      if (items.length > ITEMS_OF_A_STRETCH) {
        return this.#takeDivided(items, { deadlineMicros, connection, mayWait, wide });
      }
      map = this.#mapOf(items[0] as TakeItem);
      part = map.partOf(items[0] as TakeItem);
      for (let i = 1; i < items.length; i++) {
        const item = items[i] as TakeItem;
        if (this.#mapOf(item) !== map || map.partOf(item) !== part) {
          return this.#takeDivided(items, { deadlineMicros, connection, mayWait, wide });
        }
      }
    }
    const shard = map.shardOf(part);
    if (shard instanceof StorageError) return shard;
    return shard.takePart({ part, items, deadlineMicros, connection, mayWait, wide });
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

  async #takeDivided(items: readonly TakeItem[], asking: Asking): Promise<TakeResult> {
    const parts = await runInTurns(divide(items, (item) => this.#mapOf(item)));
    const [only] = parts;
    if (only === undefined || parts.length > 1) return this.#takeFromSeveral(items, parts, asking);
    await only.ask(asking, items);
    return only.result;
  }

  async #takeFromSeveral(
    items: readonly TakeItem[],
    parts: readonly RequestPart[],
    asking: Asking,
  ): Promise<TakeResult> {
    const { timeoutMicros, countDeniedHits, monotonicMicros } = this.#options;
    const deadlineMicros = Math.min(asking.deadlineMicros, monotonicMicros() + timeoutMicros);
    const several = { ...asking, deadlineMicros };
    const later = { ...several, mayWait: true };
    const refusal = noteRefusals(parts, asking.mayWait);
    const { canBeDenied, isHopeless } = outlookOf(items);
    if (!canBeDenied) {
      await this.#ask(parts, several, undefined);
      return (
        (await this.#notPassing(items, parts, asking)) ?? runInTurns(join(items, parts, ({ found }) => found))
      );
    }

    const isDenied = isHopeless || refusal !== undefined;
    const { first, last } = this.#order(parts);
    const looksFirst = first.length > 0 && !countDeniedHits;
    await this.#ask(first, several, {
      defersRefunds: countDeniedHits || first.length > 1,
      watchesQuotas: true,
      isDenied: isDenied || looksFirst,
    });
    const isCountedLater = looksFirst && first.some((part) => part.items.some(isNoCandidate));
    const cannotPass = isDenied || firstError(first) !== undefined || denyTogether(first, last);
    await this.#ask(last, several, {
      defersRefunds: isCountedLater || last.length > 1,
      watchesQuotas: first.some(({ hasQuotaLeft }) => hasQuotaLeft) || quotaParts(last) > 1,
      isDenied: cannotPass,
    });
    let refused = await this.#notPassing(items, parts, asking);
    if (refused !== undefined) return refused;

    if (isCountedLater) {
      await this.#ask(first, later, {
        defersRefunds: first.length > 1,
        watchesQuotas: last.some(({ hasQuotaLeft }) => hasQuotaLeft) || quotaParts(first) > 1,
        isDenied: false,
        which: isNoCandidate,
      });
      refused = await this.#notPassing(items, parts, asking);
      if (refused !== undefined) return refused;
    }
    const error = await this.#refund(parts, later);
    if (error === undefined) return runInTurns(join(items, parts, ({ found }) => found));
    this.#giveBacks.begin(parts, asking.connection, asking.wide);
    return error;
  }

  /** Those of a request to two Redis that are asked before the others. */
  #order(parts: readonly RequestPart[]): {
    readonly first: readonly RequestPart[];
    readonly last: readonly RequestPart[];
  } {
    const first = parts.filter(({ map }) => map === this.#perSecond);
    if (first.length === parts.length) return { first: [], last: parts };
    return { first, last: parts.filter(({ map }) => map === this.#main) };
  }

  /** A step: asks some parts at the same time, and notes what they answer. Undefined: all items as they are. */
  async #ask(parts: readonly RequestPart[], asking: Asking, step: Step | undefined): Promise<void> {
    const { countDeniedHits } = this.#options;
    const answers: (Promise<void> | undefined)[] = [];
    await runInTurns(
      inStretches(parts, (part) => {
        part.defersRefunds = step?.defersRefunds === true;
        const asked = step === undefined ? part.items : askedFor(part.items, step, countDeniedHits);
        answers.push(part.ask(asking, asked, step?.which));
      }),
    );
    await Promise.all(answers);
  }

  /**
   * What a request is told that does not pass, by what its parts have answered by now: then it begins to be given back
   * what it took. Undefined where it passes.
   */
  async #notPassing(
    items: readonly TakeItem[],
    parts: readonly RequestPart[],
    { connection, wide }: Asking,
  ): Promise<TakeResult | undefined> {
    const { countDeniedHits } = this.#options;
    const error = firstError(parts);
    const isDenied = error === undefined ? denyTogether(parts, []) : parts.some(({ denies }) => denies);
    if (error === undefined && !isDenied) return undefined;
    this.#giveBacks.begin(parts, connection, wide);
    if (!isDenied) return error;
    return runInTurns(join(items, parts, (part) => part.outcomesOfDenial(countDeniedHits)));
  }

  /** The last step, of a request that passes: the refunds that wait for it. An error of one that could not be made. */
  async #refund(parts: readonly RequestPart[], asking: Asking): Promise<StorageError | undefined> {
    const answers: Promise<void>[] = [];
    let error: StorageError | undefined;
    const note = (part: RequestPart, result: TakeResult): void => {
      if (result instanceof StorageError) error ??= result;
      else part.noteRefunds(result);
    };
    await runInTurns(
      inStretches(parts, (part) => {
        if (!part.defersRefunds || part.shard === undefined) return;
        const items = part.items.filter(isRefund);
        if (items.every(({ hits }) => hits === 0)) return;
        const result = part.shard.takePart({ part: part.part, items, ...asking });
        if (result instanceof Promise) answers.push(result.then((late) => note(part, late)));
        else note(part, result);
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
function denyTogether(parts: readonly RequestPart[], others: readonly RequestPart[]): boolean {
  if (parts.some(({ denies }) => denies)) return true;
  const decideQuotas = quotaParts(parts) > 0 && quotaParts(others) === 0;
  return decideQuotas && !parts.some(({ hasQuotaLeft }) => hasQuotaLeft);
}

/** On how many parts there are quotas. */
function quotaParts(parts: readonly RequestPart[]): number {
  return parts.filter(({ hasQuota }) => hasQuota).length;
}

function firstError(parts: readonly RequestPart[]): StorageError | undefined {
  return parts.find(({ error }) => error !== undefined)?.error;
}

/**
 * Notes why parts cannot be asked whose servers would refuse, and what need not be asked then. Returns the first such
 * error.
 */
function noteRefusals(parts: readonly RequestPart[], mayWait: boolean): StorageError | undefined {
  const refusals = new Map<Shard, StorageError | undefined>();
  for (const part of parts) {
    const { shard } = part;
    if (shard === undefined) continue;
    if (!refusals.has(shard)) refusals.set(shard, shard.refusal(mayWait));
    part.refuse(refusals.get(shard));
  }
  const first = firstError(parts);
  if (first === undefined) return undefined;
  for (const part of parts) if (!part.items.some(canDeny)) part.refuse(first);
  return first;
}
