import { createHash } from 'node:crypto';
import type { Enforcement, Take } from '../../limiter/bucket-store.js';
import {
  freesExpired,
  HOLD_ID_DIGITS,
  type HoldId,
  hasBoundId,
  hasTooManySlots,
  placeableHold,
  type SettledHold,
} from '../../limiter/holds/hold.js';
import { settlementOperation } from '../../limiter/holds/settlement.js';
import { isCharge, type Rate } from '../../limiter/rate.js';
import type { BucketOperation } from '../../limiter/rate-algorithm.js';
import { refillRemainder, refillWhole } from '../../limiter/token-bucket.js';
import { append } from '../../runtime/append.js';
import { readAsset } from '../../runtime/assets.js';

/** The text of a script, and its SHA-1 digest, the name in Redis. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** Parts of the script, in their order in the text. */
const PARTS = ['holds', 'take'].map((name) => `src/storage/redis/script/${name}.lua`);

let loaded: Script | undefined;

/**
 * Loads the script once per process, because a cluster has many nodes. The header of take.lua documents keys,
 * arguments and reply. Throws if the build is incomplete.
 */
export function loadTakeScript(): Script {
  if (loaded !== undefined) return loaded;
  const text = PARTS.map(readAsset).join('');
  loaded = { text, sha1: createHash('sha1').update(text).digest('hex') };
  return loaded;
}

/** Largest number that {@link encodeNumber} accepts. */
export const MAX_ENCODED = 64 ** 3 - 1;
const FIRST_DIGIT = 48;
/** Values of hexadecimal digits, by character code. */
const DIGITS = new Uint8Array(128);
for (let digit = 0; digit < 16; digit++) DIGITS[digit.toString(16).charCodeAt(0)] = digit;
/** Reused, see {@link encodeId}. */
const idBytes = Buffer.alloc(14);
const encoded: string[] = [];
/** Largest number whose text is cached; larger ones are rare. */
const MAX_CACHED_NUMBER = 4096;

/**
 * Encodes a number from 0 to {@link MAX_ENCODED} as three characters: base 64, with digits from character code 48 on.
 */
export function encodeNumber(value: number): string {
  const cached = encoded[value];
  if (cached !== undefined) return cached;
  const text = String.fromCharCode(
    FIRST_DIGIT + (value >> 12),
    FIRST_DIGIT + ((value >> 6) & 63),
    FIRST_DIGIT + (value & 63),
  );
  if (value < MAX_CACHED_NUMBER) encoded[value] = text;
  return text;
}

const ENFORCEMENT = { enforce: '0', observe: '1', quota: '2', spill: '3' } as const;

/** Maximum number of comparisons for one rate. Beyond it, equal arguments may be sent twice, which only costs bytes. */
const MAX_COMPARED_ARGUMENTS = 16;

/** Kinds of takes; see take.lua. */
const [TAKE, PEEK, REFUND, CHARGE, UNDO, OLDEST] = [0, 1, 2, 3, 4, 5];
const DEBT_FOLLOWS = 10;
const CALENDAR_FOLLOWS = 20;
const HOLD_FOLLOWS = 40;
const SETTLEMENT_FOLLOWS = 80;
const FREED_FOLLOWS = 160;

/** Distinct arguments in a batch. They are those of the first item that has them. */
interface TakeArguments {
  readonly item: Take;
  readonly enforcement: Enforcement;
  readonly index: number;
}

const NONE: TakeArguments[] = [];

/** The distinct arguments of a batch. Takes from buckets of one rule usually have the same arguments. */
export class TakeArgumentTable {
  private list: TakeArguments[] = [];
  private last: TakeArguments | undefined;
  /** Set once there are several distinct arguments. */
  private byRate: Map<Rate, TakeArguments[]> | undefined;
  private readonly wallMicros: () => number;

  /** `wallMicros` returns the approximate time of Redis's clock, which selects the calendar windows to send. */
  constructor(wallMicros: () => number) {
    this.wallMicros = wallMicros;
  }

  /** Appends the arguments to `args`, see take.lua, with the calendar windows of the current time. */
  encode(args: string[]): void {
    for (const ask of this.list) this.write(args, ask);
  }

  /** The index of the arguments of an item, from 1. */
  indexOf(take: Take, enforcement = take.enforcement): number {
    const { last } = this;
    if (last !== undefined && equal(last, take, enforcement)) return last.index;
    const known = last === undefined ? NONE : this.listOf(take.rate, last);
    let ask: TakeArguments | undefined;
    for (let i = 0; i < known.length && i < MAX_COMPARED_ARGUMENTS; i++) {
      const candidate = known[i] as TakeArguments;
      if (equal(candidate, take, enforcement)) {
        ask = candidate;
        break;
      }
    }
    if (ask === undefined) {
      ask = { item: take, enforcement, index: this.list.length + 1 };
      this.list = append(this.list, ask);
      this.byRate?.set(take.rate, append(known, ask));
    }
    this.last = ask;
    return ask.index;
  }

  /** Returns the known arguments with a rate; `first` is the first one of the batch. */
  private listOf(rate: Rate, first: TakeArguments): TakeArguments[] {
    this.byRate ??= new Map([[first.item.rate, [first]]]);
    return this.byRate.get(rate) ?? NONE;
  }

  private write(args: string[], { item, enforcement }: TakeArguments): void {
    const { rate, hits, refund, undoAtMicros, settles } = item;
    const holds = placeableHold(item);
    const charge = isCharge(rate, hits, refund);
    const calendar = rate.kind === 'window' ? rate.calendar : undefined;
    const { fullAtMicros: useMicros = 0, refundMicros } = operationOf(item) ?? {};
    const following =
      (rate.maxDebt > 0 ? DEBT_FOLLOWS : 0) +
      (calendar === undefined ? 0 : CALENDAR_FOLLOWS) +
      (holds === undefined && settles !== 'oldest' ? 0 : HOLD_FOLLOWS) +
      (settles === undefined || settles === 'oldest' ? 0 : SETTLEMENT_FOLLOWS) +
      (freesExpired(item) ? FREED_FOLLOWS : 0);
    const what = kindOf(item);
    args.push(String(what + following), ENFORCEMENT[enforcement]);
    if (rate.kind === 'concurrency') {
      // A limit without slots denies the take, and does not count its slots.
      const isDenied = !refund && hasTooManySlots(rate, hits);
      args.push('0', String(isDenied ? 0 : rate.max), '0', String(isDenied ? 0 : hits), '0');
    } else if (rate.kind === 'window') {
      args.push(String(-rate.lengthMicros), String(rate.requestsPerUnit));
      args.push(rate.countsOnlyAllowed ? '1' : '0', String(hits), '0');
      if (rate.maxDebt > 0) args.push(String(rate.maxCountWithDebt), '0');
    } else {
      args.push(String(rate.refillDenominator), String(rate.fillWhole), String(rate.fillCarry));
      if (what === OLDEST) {
        // The script multiplies the cost of one hit.
        args.push(String(refillWhole(rate, 1)), String(refillRemainder(rate, 1)));
      } else if (refundMicros !== undefined) {
        args.push(String(refundMicros), '0');
      } else if (refund) {
        args.push(String(rate.refundWhole(hits)), String(rate.refundCarry(hits)));
      } else if (charge) {
        const charged = rate.chargedHits(hits);
        args.push(String(refillWhole(rate, charged)), String(refillRemainder(rate, charged)));
      } else {
        // A peek tests for one more token.
        const requested = hits === 0 ? 1 : hits;
        args.push(String(rate.takeCostWhole(requested)), String(rate.takeCostCarry(requested)));
      }
      if (rate.maxDebt > 0) args.push(String(rate.debtWhole), String(rate.debtCarry));
    }
    if (holds !== undefined) args.push(String(holds.lifetimeMillis), String(hits));
    if (settles === 'oldest') args.push(String(hits), String(maxChargedHits(rate)));
    else if (settles !== undefined) {
      const { lifetimeMillis, amount, refillMicros = 0 } = settles;
      const compares = rate.kind === 'concurrency' && !hasBoundId(settles);
      args.push(
        String(lifetimeMillis),
        String(amount),
        String(compares ? 1 : useMicros),
        String(refillMicros),
      );
    }
    if (freesExpired(item)) {
      const isBucket = rate.kind === 'token_bucket';
      args.push(String(isBucket ? refillWhole(rate, 1) : 0), String(isBucket ? refillRemainder(rate, 1) : 0));
      args.push(String(maxChargedHits(rate)));
    }
    if (what === UNDO && settles === undefined) args.push(String(undoAtMicros));
    if (calendar === undefined) return;
    for (const boundary of calendar.boundariesAround(this.wallMicros())) args.push(String(boundary));
  }
}

/** Returns the operation of an item that settles a hold as if the bucket would have been full at the time 0. */
function operationOf(take: Take): BucketOperation | undefined {
  const { settles } = take;
  if (settles === undefined || settles === 'oldest') return undefined;
  return settlementOperation(take, { ...settles, fullAtMicros: 0 }, 0);
}

function kindOf({ rate, hits, refund, undoAtMicros, settles }: Take): number {
  if (settles === 'oldest') return OLDEST;
  if (isCharge(rate, hits, refund)) return CHARGE;
  if (!refund) return hits === 0 ? PEEK : TAKE;
  return undoAtMicros !== undefined || settles !== undefined ? UNDO : REFUND;
}

/** Returns the maximum number of hits of a charge or refund that change a bucket. */
function maxChargedHits(rate: Rate): number {
  return rate.kind === 'token_bucket' ? rate.maxChangedHits : Number.MAX_SAFE_INTEGER;
}

function equal(known: TakeArguments, take: Take, enforcement: Enforcement): boolean {
  const ask = known.item;
  return (
    ask.rate === take.rate &&
    ask.hits === take.hits &&
    ask.refund === take.refund &&
    known.enforcement === enforcement &&
    ask.undoAtMicros === take.undoAtMicros &&
    haveEqualHolds(ask, take)
  );
}

/** Returns whether the holds and settlements of two items are equal, except for what {@link encodeHold} encodes. */
export function haveEqualHolds(one: Take, other: Take): boolean {
  return (
    one.holds?.lifetimeMillis === other.holds?.lifetimeMillis &&
    freesExpired(one) === freesExpired(other) &&
    settlesSame(one.settles, other.settles)
  );
}

function settlesSame(one: SettledHold | undefined, other: SettledHold | undefined): boolean {
  if (one === other) return true;
  if (one === undefined || other === undefined || one === 'oldest' || other === 'oldest') return false;
  return (
    one.lifetimeMillis === other.lifetimeMillis &&
    one.amount === other.amount &&
    one.refillMicros === other.refillMicros &&
    hasBoundId(one) === hasBoundId(other)
  );
}

/** Stands for the id of a hold that the script finds. */
const NO_HOLD_ID = encodeId('0'.repeat(HOLD_ID_DIGITS));

/**
 * Encodes the hold that an item places or settles for a step, see take.lua: its id, and `fullAtMicros` for the
 * settlement of a reservation. Returns undefined if the item has no hold. A peek also names the set of its rule if the
 * script must first free expired holds of this set.
 */
export function encodeHold(take: Take): string | undefined {
  const { settles } = take;
  if (settles === undefined) {
    const holds = freesExpired(take) ? take.holds : placeableHold(take);
    return holds === undefined ? undefined : encodeId(holds.id);
  }
  if (settles === 'oldest') return NO_HOLD_ID;
  const id = encodeId(settles.id);
  return take.rate.kind === 'concurrency' ? id : id + encodeTime(settles.fullAtMicros);
}

/**
 * Encodes the id of a hold as 13 characters of 7 bits each, and one of 5 bits. Its member in the set starts with them,
 * so that the script need not convert them.
 */
export function encodeId(id: HoldId): string {
  let [bits, count, at] = [0, 0, 0];
  for (let i = 0; i < HOLD_ID_DIGITS; i++) {
    bits = (bits << 4) | (DIGITS[id.charCodeAt(i)] as number);
    count += 4;
    if (count < 7) continue;
    count -= 7;
    idBytes[at++] = (bits >> count) & 127;
  }
  idBytes[at] = bits & 31;
  return idBytes.toString('latin1');
}

/** Encodes a number from 0 to 2^53-1 as nine characters, like {@link encodeNumber}. */
function encodeTime(micros: number): string {
  const base = MAX_ENCODED + 1;
  const high = Math.floor(micros / base);
  return encodeNumber(Math.floor(high / base)) + encodeNumber(high % base) + encodeNumber(micros % base);
}
