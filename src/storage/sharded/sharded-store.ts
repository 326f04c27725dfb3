import {
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { deniesRequest } from '../../limiter/decide.js';
import { atOnce, inTurns } from '../../runtime/turns.js';
import { refundsOf, untouched } from '../give-back.js';
import { isRefund, replaced, UNDECIDED } from '../in-steps.js';
import { NARROW_ITEMS } from '../redis/wide-takes.js';
import type { GiveBackStats } from '../split-store.js';
import {
  canDeny,
  divide,
  ITEMS_OF_A_STRETCH,
  inStretches,
  join,
  prepare,
  type RequestPart,
} from './request-parts.js';
import type { GiveBackResult, PartTake, Shard, ShardMap, UndoableStore } from './shard.js';

/** Settings of {@link ShardedStore}. */
export interface ShardedStoreOptions {
  readonly map: ShardMap;
  /** Longest that a request to several parts, and giving back, may take, microseconds. */
  readonly timeoutMicros: number;
  /** As the shards do. */
  readonly countDeniedHits: boolean;
  /** Clock of deadlines, microseconds. */
  readonly monotonicMicros: () => number;
  /** Told what is given back to a part, as refunds, when that is sent and when it is known what came of it. */
  readonly onGiveBack?: (refunds: readonly TakeItem[]) => void;
}

/** How the parts of one request are asked. */
type Asking = Omit<PartTake, 'part' | 'items'>;

/** What is given back to one part. */
interface Return {
  readonly shard: Shard;
  readonly take: PartTake;
  readonly takenOn: unknown;
}

/** The others may have been made. */
const WORST_FIRST: readonly GiveBackResult[] = ['failed', 'skipped', 'made'];

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
  readonly #givingBack = new Set<Promise<unknown>>();
  readonly #counts = { made: 0, failed: 0, skipped: 0 };
  readonly #numbers = new WeakMap<Shard, number>();
  #shards = 0;

  constructor(options: ShardedStoreOptions) {
    this.#options = options;
    this.#map = options.map;
  }

  /** Longest that a request to several parts may take, microseconds. */
  get timeoutMicros(): number {
    return this.#options.timeoutMicros;
  }

  /** Requests that were given back what some parts had taken for them; those of `giveBack` are their caller's. */
  get giveBackStats(): GiveBackStats {
    return this.#counts;
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

  holding(items: readonly TakeItem[]): string | undefined {
    let holding = '';
    for (const item of items) {
      const shard = this.#map.shardOf(this.#map.partOf(item));
      if (shard instanceof StorageError || shard.holds === undefined) return undefined;
      holding += `${this.#numberOf(shard)}:${String(shard.holds)} `;
    }
    return holding;
  }

  async giveBack(
    refunds: readonly TakeItem[],
    takenOn: unknown,
    connection: unknown,
  ): Promise<GiveBackResult> {
    if (takenOn === undefined || this.holding(refunds) !== takenOn) return 'skipped';
    // Not in turns: what holds them might be another one after a turn.
    const parts = atOnce(divide(refunds, this.#map));
    const asking = this.#returning(connection, refunds.length > NARROW_ITEMS);
    const returns = parts.flatMap(({ part, shard, items }) =>
      shard === undefined ? [] : [{ shard, takenOn: shard.holds, take: { part, items, ...asking } }],
    );
    return this.#send(returns, () => {});
  }

  /** Waits for what is given back, for the timeout at most, and closes the shards. */
  async close(): Promise<void> {
    await Promise.all(this.#givingBack);
    await this.#map.close();
    // Of requests that ended with that.
    await Promise.all(this.#givingBack);
  }

  async #takeFromSeveral(items: readonly TakeItem[], asking: Asking): Promise<TakeResult> {
    const { timeoutMicros, countDeniedHits, monotonicMicros } = this.#options;
    const parts = await inTurns(divide(items, this.#map));
    const [only] = parts;
    if (only !== undefined && parts.length === 1) {
      return only.shard?.takePart({ part: only.part, items, ...asking }) ?? (only.result as StorageError);
    }
    const deadlineMicros = Math.min(asking.deadlineMicros, monotonicMicros() + timeoutMicros);
    const several = { ...asking, deadlineMicros };
    const refusal = noteRefusals(parts, asking.mayWait);
    const hasRefunds = await inTurns(prepare(items, parts, countDeniedHits, refusal !== undefined));

    const error = await this.#ask(parts, several);
    const undo = (): void => this.#undo(parts, asking);
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
    const answers: Promise<void>[] = [];
    await inTurns(
      inStretches(parts, (part) => {
        const { shard } = part;
        if (shard === undefined || part.result !== undefined) return;
        const note = (result: TakeResult): void => {
          part.result = result;
          part.takenOn = shard.holds;
        };
        const result = shard.takePart({ part: part.part, items: part.asked, ...asking });
        if (result instanceof Promise) answers.push(result.then(note));
        else note(result);
      }),
    );
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

  /** Gives back what the parts took that let the request pass, once, and without anybody waiting for it. */
  #undo(parts: readonly RequestPart[], { connection, wide }: Asking): void {
    const sent = this.#returnAll(parts, this.#returning(connection, wide)).then((result) => {
      if (result !== undefined) this.#counts[result]++;
      this.#givingBack.delete(sent);
    });
    this.#givingBack.add(sent);
  }

  /** What became of it; undefined where nothing was to be given back. */
  async #returnAll(parts: readonly RequestPart[], asking: Asking): Promise<GiveBackResult | undefined> {
    const { countDeniedHits, onGiveBack } = this.#options;
    const returns: Return[] = [];
    await inTurns(
      inStretches(parts, ({ took, asked, outcomes, part, shard, takenOn }) => {
        const items = took ? refundsOf(asked, outcomes, countDeniedHits) : [];
        if (shard !== undefined && items.length > 0)
          returns.push({ shard, takenOn, take: { part, items, ...asking } });
      }),
    );
    return returns.length === 0 ? undefined : this.#send(returns, (refunds) => onGiveBack?.(refunds));
  }

  /** The time of the request may be over: giving back has its own. */
  #returning(connection: unknown, wide: boolean): Asking {
    const { timeoutMicros, monotonicMicros } = this.#options;
    return { connection, wide, mayWait: true, deadlineMicros: monotonicMicros() + timeoutMicros };
  }

  /** Sends what is given back. The worst of what became of it. */
  async #send(
    returns: readonly Return[],
    tell: (refunds: readonly TakeItem[]) => void,
  ): Promise<GiveBackResult> {
    const results: Promise<GiveBackResult>[] = [];
    await inTurns(
      inStretches(returns, ({ shard, take, takenOn }) => {
        tell(take.items);
        results.push(
          shard.giveBackPart(take, takenOn).then((result) => {
            tell(take.items);
            return result;
          }),
        );
      }),
    );
    const found = new Set(await Promise.all(results));
    return WORST_FIRST.find((result) => found.has(result)) ?? 'made';
  }

  /** Shards count their connections alike. */
  #numberOf(shard: Shard): number {
    let number = this.#numbers.get(shard);
    if (number === undefined) {
      number = ++this.#shards;
      this.#numbers.set(shard, number);
    }
    return number;
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
