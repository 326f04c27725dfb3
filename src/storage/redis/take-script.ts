import { createHash } from 'node:crypto';
import { readAsset } from '../../assets.js';
import type { Enforcement } from '../../limiter/bucket-store.js';
import { isCharge, type Rate } from '../../limiter/rate.js';
import { costCarry, costWhole } from '../../limiter/token-bucket.js';

/** The text of a script, and its SHA-1 digest, the name in Redis. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** Parts of the script, in their order in the text. */
const PARTS = ['take', 'take-runs', 'take-levels', 'take-groups'].map(
  (name) => `src/storage/redis/script/${name}.lua`,
);

let loaded: Script | undefined;

/**
 * Loads the script once per process, because a cluster has many nodes. The header of its first part documents keys,
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

const ENFORCEMENT = { enforce: '0', observe: '1', quota: '2', candidate: '3' } as const;

/** Maximum number of comparisons for one rate. Beyond it, equal arguments may be sent twice, which only costs bytes. */
const MAX_COMPARED_ARGUMENTS = 16;

/** Kinds of takes; see take.lua. */
const [TAKE, PEEK, REFUND, CHARGE, UNDO, SURPLUS] = [0, 1, 2, 3, 4, 5];
const DEBT_FOLLOWS = 10;
const CALENDAR_FOLLOWS = 20;

/** Distinct arguments in a batch. */
interface TakeArguments {
  readonly rate: Rate;
  readonly hits: number;
  readonly refund: boolean;
  readonly enforcement: Enforcement;
  readonly undoMark: number | undefined;
  readonly allowSurplus: boolean;
  readonly index: number;
}

const NONE: TakeArguments[] = [];

/**
 * Appends to a list. Most calls to a Redis Cluster have one take. A new list with one literal element allocates no
 * spare capacity.
 */
export function append<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one];
  list.push(one);
  return list;
}

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

  /** Returns the index of the arguments, from 1. `undoMark` and `allowSurplus` are those of TakeItem. */
  indexOf(
    rate: Rate,
    hits: number,
    refund: boolean,
    enforcement: Enforcement,
    undoMark?: number,
    allowSurplus = false,
  ): number {
    const { last } = this;
    if (last !== undefined && equal(last, rate, hits, refund, enforcement, undoMark, allowSurplus))
      return last.index;
    const known = last === undefined ? NONE : this.listOf(rate, last);
    let ask: TakeArguments | undefined;
    for (let i = 0; i < known.length && i < MAX_COMPARED_ARGUMENTS; i++) {
      const candidate = known[i] as TakeArguments;
      if (equal(candidate, rate, hits, refund, enforcement, undoMark, allowSurplus)) {
        ask = candidate;
        break;
      }
    }
    if (ask === undefined) {
      ask = { rate, hits, refund, enforcement, undoMark, allowSurplus, index: this.list.length + 1 };
      this.list = append(this.list, ask);
      this.byRate?.set(rate, append(known, ask));
    }
    this.last = ask;
    return ask.index;
  }

  /** Returns the known arguments with a rate; `first` is the first one of the batch. */
  private listOf(rate: Rate, first: TakeArguments): TakeArguments[] {
    this.byRate ??= new Map([[first.rate, [first]]]);
    return this.byRate.get(rate) ?? NONE;
  }

  private write(
    args: string[],
    { rate, hits, refund, enforcement, undoMark, allowSurplus }: TakeArguments,
  ): void {
    const charge = isCharge(rate, hits, refund);
    const calendar = rate.kind === 'window' ? rate.calendar : undefined;
    const following = (rate.maxDebt > 0 ? DEBT_FOLLOWS : 0) + (calendar === undefined ? 0 : CALENDAR_FOLLOWS);
    const refundKind = undoMark !== undefined ? UNDO : allowSurplus ? SURPLUS : REFUND;
    const what = charge ? CHARGE : refund ? refundKind : hits === 0 ? PEEK : TAKE;
    args.push(String(what + following), ENFORCEMENT[enforcement]);
    if (rate.kind === 'window') {
      args.push(String(-rate.lengthMicros), String(rate.requestsPerUnit));
      args.push(rate.allOrNothing ? '1' : '0', String(hits), '0');
      if (rate.maxDebt > 0) args.push(String(rate.maxCountWithDebt), '0');
    } else {
      args.push(String(rate.q), String(rate.fillWhole), String(rate.fillCarry));
      if (charge || refund) {
        const charged = rate.chargedHits(hits);
        args.push(String(costWhole(rate, charged)), String(costCarry(rate, charged)));
      } else {
        // A peek tests for one more token.
        const requested = hits === 0 ? 1 : hits;
        args.push(String(rate.takeCostWhole(requested)), String(rate.takeCostCarry(requested)));
      }
      if (rate.maxDebt > 0) args.push(String(rate.debtWhole), String(rate.debtCarry));
    }
    if (what === UNDO || what === SURPLUS) {
      args.push(String(rate.kind === 'window' ? rate.maxSurplus : rate.surplusMicros));
    }
    if (what === UNDO) args.push(String(undoMark));
    if (calendar === undefined) return;
    for (const boundary of calendar.boundariesAround(this.wallMicros())) args.push(String(boundary));
  }
}

function equal(
  ask: TakeArguments,
  rate: Rate,
  hits: number,
  refund: boolean,
  enforcement: Enforcement,
  undoMark: number | undefined,
  allowSurplus: boolean,
): boolean {
  return (
    ask.rate === rate &&
    ask.hits === hits &&
    ask.refund === refund &&
    ask.enforcement === enforcement &&
    ask.undoMark === undoMark &&
    ask.allowSurplus === allowSurplus
  );
}
