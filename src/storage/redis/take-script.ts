import { createHash } from 'node:crypto';
import { readAsset } from '../../assets.js';
import type { TakeItem, TakeOutcome } from '../../limiter/bucket-store.js';
import { outcome } from '../../limiter/outcome.js';
import { askedCarry, askedWhole, type Rate } from '../../limiter/rate.js';

/** The text of take.lua and the name Redis gives it. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** Loads the script; its header documents keys, arguments and reply. Throws when the build is incomplete. */
export function loadTakeScript(): Script {
  const text = readAsset('src/storage/redis/take.lua');
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}

const ENFORCEMENT = { enforce: '0', observe: '1', quota: '2' } as const;

/** Asks of one rate that are compared; past these an ask may be sent twice, which costs bytes only. */
const ASKS_COMPARED = 16;

/** One distinct ask of a batch; items that ask the same of buckets of one rule share it. */
interface Ask {
  readonly hits: number;
  readonly refund: boolean;
  readonly enforcement: TakeItem['enforcement'];
  readonly index: string;
}

/** Collects requests into the arguments of one script call. */
export class TakeArguments {
  readonly keys: string[] = [];
  private readonly indexes = new Map<string, string>();
  private readonly rates = new Map<Rate, Ask[]>();
  private readonly asks: string[] = [];
  private askCount = 0;
  private readonly requests: string[] = [];

  /** Adds one request; `keyOf` gives the Redis key of an item. */
  add(items: readonly TakeItem[], keyOf: (item: TakeItem) => string): void {
    this.requests.push(String(items.length));
    for (const item of items) this.requests.push(this.keyIndex(keyOf(item)), this.askIndex(item));
  }

  /**
   * What follows the script in EVALSHA: number of keys, keys, ARGV. `clock` is a test's time in microseconds, `seen` the
   * latest time seen from this Redis.
   */
  toCommand(clock: number | undefined, seen: number, countDeniedHits: boolean): string[] {
    const count = String(this.askCount);
    const now = clock === undefined ? '' : String(clock);
    return [String(this.keys.length)].concat(
      this.keys,
      [now, String(seen), countDeniedHits ? '1' : '0', count],
      this.asks,
      this.requests,
    );
  }

  private keyIndex(key: string): string {
    let index = this.indexes.get(key);
    if (index === undefined) {
      this.keys.push(key);
      index = String(this.keys.length);
      this.indexes.set(key, index);
    }
    return index;
  }

  private askIndex(item: TakeItem): string {
    const { rate, hits, refund, enforcement } = item;
    let known = this.rates.get(rate);
    if (known === undefined) {
      known = [];
      this.rates.set(rate, known);
    }
    for (let i = 0; i < known.length && i < ASKS_COMPARED; i++) {
      const ask = known[i] as Ask;
      if (ask.hits === hits && ask.refund === refund && ask.enforcement === enforcement) return ask.index;
    }
    const index = String(++this.askCount);
    known.push({ hits, refund, enforcement, index });
    this.asks.push(refund ? '2' : hits === 0 ? '1' : '0', ENFORCEMENT[enforcement]);
    if (rate.kind === 'window') {
      this.asks.push(String(-rate.lengthMicros), String(rate.requestsPerUnit), '0', String(hits), '0');
    } else {
      // A peek asks for one token more; giving back nothing costs nothing.
      const asked = hits === 0 && !refund ? 1 : hits;
      this.asks.push(String(rate.q), String(rate.fillWhole), String(rate.fillCarry));
      this.asks.push(String(askedWhole(rate, asked)), String(askedCarry(rate, asked)));
    }
    return index;
  }
}

/** The script's reply, read request by request in the order they were added. */
export class TakeReply {
  /** The time the script used, in microseconds. */
  readonly nowMicros: number;
  private readonly values: readonly number[];
  private at = 1;

  /** Throws an Error when `reply` is not what take.lua answers to `items` items. */
  constructor(reply: unknown, items: number) {
    if (!Array.isArray(reply) || reply.length !== 1 + 3 * items || typeof reply[0] !== 'number') {
      throw new Error('the script answered in an unknown form');
    }
    this.values = reply as readonly number[];
    this.nowMicros = reply[0];
  }

  /** Outcomes of the next request. */
  next(items: readonly TakeItem[]): TakeOutcome[] {
    const { values, nowMicros } = this;
    const outcomes = new Array<TakeOutcome>(items.length);
    for (let i = 0; i < items.length; i++) {
      const at = this.at;
      outcomes[i] = outcome(
        items[i] as TakeItem,
        values[at] === 1,
        values[at + 1] as number,
        values[at + 2] as number,
        nowMicros,
      );
      this.at += 3;
    }
    return outcomes;
  }

  /** Passes over a request nobody waits for any more. */
  skip(items: readonly TakeItem[]): void {
    this.at += 3 * items.length;
  }
}
