import {
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { deniesRequest } from '../../limiter/decide.js';
import { inTurns } from '../../runtime/turns.js';
import { isRefund, replaced, UNDECIDED } from '../in-steps.js';
import { NARROW_ITEMS } from '../redis/wide-takes.js';
import { untouched } from './give-back.js';
import { type GiveBackOptions, type GiveBackStats, GiveBacks } from './give-backs.js';
import {
  canDeny,
  divide,
  ITEMS_OF_A_STRETCH,
  inStretches,
  join,
  prepare,
  type RequestPart,
  type Taken,
  type UndoableStore,
} from './request-parts.js';
import type { Asking, Shard, ShardMap } from './shard.js';

/** Settings of {@link ShardedStore}. */
export interface ShardedStoreOptions extends GiveBackOptions {
  readonly map: ShardMap;
}

/**
 * Buckets spread over several servers. Requests whose buckets lie on one part go there as they are. A request with
 * buckets on several parts asks all of them at the same time, and is denied if one denies it, or all of its quotas are
 * used up: then those that let it pass are given back what they took ({@link refundsOf}). What each is asked, `prepare`
 * says; where a request takes and refunds in one and the same bucket, it takes first.
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
export class ShardedStore implements UndoableStore {
  readonly #options: ShardedStoreOptions;
  readonly #map: ShardMap;
  readonly #giveBacks: GiveBacks;

  constructor(options: ShardedStoreOptions) {
    this.#options = options;
    this.#map = options.map;
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
    // Divided in turns, wherever they lie.
    if (items.length > ITEMS_OF_A_STRETCH) {
      return this.#takeFromSeveral(items, { deadlineMicros, connection, mayWait, wide });
    }
    const map = this.#map;
    const part = map.partOf(items[0] as TakeItem);
    for (let i = 1; i < items.length; i++) {
      if (map.partOf(items[i] as TakeItem) !== part) {
        return this.#takeFromSeveral(items, { deadlineMicros, connection, mayWait, wide });
      }
    }
    const shard = map.shardOf(part);
    if (shard instanceof StorageError) return shard;
    return shard.takePart({ part, items, deadlineMicros, connection, mayWait, wide });
  }

  async takeUndoably(items: readonly TakeItem[], asking: Asking): Promise<Taken> {
    const parts = await inTurns(divide(items, this.#map));
    return { result: await this.#takeFrom(parts, items, asking), parts };
  }

  /** Waits for what is given back, for the timeout at most, and closes the shards. */
  async close(): Promise<void> {
    await this.#giveBacks.settled();
    await this.#map.close();
    // Of requests that ended with that.
    await this.#giveBacks.settled();
  }

  async #takeFromSeveral(items: readonly TakeItem[], asking: Asking): Promise<TakeResult> {
    return this.#takeFrom(await inTurns(divide(items, this.#map)), items, asking);
  }

  async #takeFrom(
    parts: readonly RequestPart[],
    items: readonly TakeItem[],
    asking: Asking,
  ): Promise<TakeResult> {
    const { timeoutMicros, countDeniedHits, monotonicMicros } = this.#options;
    const [only] = parts;
    if (only !== undefined && parts.length === 1) {
      only.asked = items;
      await only.ask(asking);
      return only.result as TakeResult;
    }
    const deadlineMicros = Math.min(asking.deadlineMicros, monotonicMicros() + timeoutMicros);
    const several = { ...asking, deadlineMicros };
    const refusal = noteRefusals(parts, asking.mayWait);
    const hasRefunds = await inTurns(prepare(items, parts, countDeniedHits, refusal !== undefined));

    const error = await this.#ask(parts, several);
    const undo = (): void => this.#giveBacks.begin(parts, asking.connection, asking.wide);
    if (error !== undefined) {
      undo();
      if (!parts.some(({ denies }) => denies)) return error;
      return inTurns(join(items, parts, (part) => toldWithout(part, countDeniedHits)));
    }
    const found = await inTurns(join(items, parts, ({ outcomes }) => outcomes));
    if (deniesRequest(items, found)) {
      undo();
      return inTurns(join(items, parts, (part) => toldWithout(part, countDeniedHits)));
    }
    if (!hasRefunds) return found;

    const returned = await this.#refund(parts, several);
    if (!(returned instanceof StorageError)) {
      return inTurns(join(items, parts, (part) => returned.get(part) ?? part.outcomes));
    }
    undo();
    return returned;
  }

  /** The first step: asks all parts, and notes what they answer. The error of the first one that has one. */
  async #ask(parts: readonly RequestPart[], asking: Asking): Promise<StorageError | undefined> {
    const answers: (Promise<void> | undefined)[] = [];
    await inTurns(inStretches(parts, (part) => answers.push(part.ask(asking))));
    await Promise.all(answers);
    return parts.find((part) => part.error !== undefined)?.error;
  }

  /** The second step, of a request that passes: its refunds. What the parts that have some say then, or an error. */
  async #refund(
    parts: readonly RequestPart[],
    asking: Asking,
  ): Promise<ReadonlyMap<RequestPart, readonly TakeOutcome[]> | StorageError> {
    const outcomes = new Map<RequestPart, readonly TakeOutcome[]>();
    const answers: Promise<void>[] = [];
    let error: StorageError | undefined;
    const note = (part: RequestPart, result: TakeResult): void => {
      if (result instanceof StorageError) error ??= result;
      else outcomes.set(part, replaced(part.items, part.outcomes, isRefund, result));
    };
    await inTurns(
      inStretches(parts, (part) => {
        const items = part.items.filter(isRefund);
        if (part.shard === undefined || items.every(({ hits }) => hits === 0)) return;
        const result = part.shard.takePart({ part: part.part, items, ...asking, mayWait: true });
        if (result instanceof Promise) answers.push(result.then((late) => note(part, late)));
        else note(part, result);
      }),
    );
    await Promise.all(answers);
    return error ?? outcomes;
  }
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
    part.result = refusals.get(shard);
  }
  const first = parts.find((part) => part.error !== undefined)?.error;
  if (first === undefined) return undefined;
  for (const part of parts) if (!part.items.some(canDeny)) part.result ??= first;
  return first;
}

/** What a part tells of a request that is denied. */
function toldWithout(part: RequestPart, countDeniedHits: boolean): readonly TakeOutcome[] {
  if (part.error !== undefined) return part.items.map(() => UNDECIDED);
  return part.took ? untouched(part.asked, part.outcomes, countDeniedHits) : part.outcomes;
}
