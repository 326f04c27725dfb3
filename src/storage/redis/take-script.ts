import { createHash } from 'node:crypto';
import { readAsset } from '../../assets.js';
import type { Enforcement } from '../../limiter/bucket-store.js';
import { BOUNDARIES, type CalendarWindows } from '../../limiter/calendar.js';
import { isCharge, type Rate } from '../../limiter/rate.js';
import { costCarry, costWhole } from '../../limiter/token-bucket.js';

/** The text of the script and the name Redis gives it. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** The script's parts: one text to Redis. */
const PARTS = ['take.lua', 'take-levels.lua', 'take-groups.lua'].map((name) => `src/storage/redis/${name}`);

/**
 * Loads the script; the header of its first part documents keys, arguments and reply. Throws when the build is
 * incomplete.
 */
export function loadTakeScript(): Script {
  const text = withoutComments(PARTS.map(readAsset).join(''));
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}

/**
 * Whole lines of comments and indents are for readers. Without them the script stays below the 16,384 bytes that Redis
 * takes from a client before it knows who that is, and so can say what it misses: a longer command breaks the
 * connection.
 */
function withoutComments(lua: string): string {
  return lua.replaceAll(/^[ \t]*(?:--.*)?\n|^[ \t]+/gm, '');
}

/** Largest number that {@link encodeNumber} can write. */
export const MAX_ENCODED = 64 ** 3 - 1;
const FIRST_DIGIT = 48;
const encoded: string[] = [];
/** Numbers whose text is kept; larger ones are rare. */
const MAX_KEPT = 4096;

/** A number from 0 to {@link MAX_ENCODED} as three characters, digits to the base 64 from code 48 on. */
export function encodeNumber(value: number): string {
  const kept = encoded[value];
  if (kept !== undefined) return kept;
  const text = String.fromCharCode(
    FIRST_DIGIT + (value >> 12),
    FIRST_DIGIT + ((value >> 6) & 63),
    FIRST_DIGIT + (value & 63),
  );
  if (value < MAX_KEPT) encoded[value] = text;
  return text;
}

const ENFORCEMENT = { enforce: '0', observe: '1', quota: '2', candidate: '3' } as const;

/** Asks of one rate that are compared; past these an ask may be sent twice, which costs bytes only. */
const ASKS_COMPARED = 16;

/** What is asked; see take.lua. */
const [TAKE, PEEK, REFUND, CHARGE, REFUND_OF_WINDOW] = [0, 1, 2, 3, 4];
const DEBT_FOLLOWS = 10;
const CALENDAR_FOLLOWS = 20;

/** One distinct ask of a batch. */
interface Ask {
  readonly rate: Rate;
  readonly hits: number;
  readonly refund: boolean;
  readonly enforcement: Enforcement;
  readonly ofWindow: number | undefined;
  readonly index: number;
}

/** The distinct asks of a batch: what is asked of buckets of one rule is mostly the same. */
export class Asks {
  private readonly args: string[] = [];
  /** Calendars asked for, and where their boundaries stand among the arguments. */
  private readonly calendars: { readonly at: number; readonly windows: CalendarWindows }[] = [];
  private count = 0;
  private last: Ask | undefined;
  private readonly byRate = new Map<Rate, Ask[]>();
  private readonly wallMicros: () => number;

  /** `wallMicros` is about what Redis's clock shows, and says which windows of calendars are sent. */
  constructor(wallMicros: () => number) {
    this.wallMicros = wallMicros;
  }

  /** Their arguments, see take.lua, with the windows of calendars as of now. */
  encode(): readonly string[] {
    for (const { at, windows } of this.calendars) {
      windows.boundariesAround(this.wallMicros()).forEach((boundary, i) => {
        this.args[at + i] = String(boundary);
      });
    }
    return this.args;
  }

  /** Index of an ask, from 1; `ofWindow` as in TakeItem. */
  indexOf(rate: Rate, hits: number, refund: boolean, enforcement: Enforcement, ofWindow?: number): number {
    const { last } = this;
    if (last !== undefined && equal(last, rate, hits, refund, enforcement, ofWindow)) return last.index;
    let known = this.byRate.get(rate);
    if (known === undefined) {
      known = [];
      this.byRate.set(rate, known);
    }
    let ask: Ask | undefined;
    for (let i = 0; i < known.length && i < ASKS_COMPARED; i++) {
      const one = known[i] as Ask;
      if (equal(one, rate, hits, refund, enforcement, ofWindow)) {
        ask = one;
        break;
      }
    }
    if (ask === undefined) {
      ask = { rate, hits, refund, enforcement, ofWindow, index: ++this.count };
      known.push(ask);
      this.write(ask);
    }
    this.last = ask;
    return ask.index;
  }

  private write({ rate, hits, refund, enforcement, ofWindow }: Ask): void {
    const { args } = this;
    const charge = isCharge(rate, hits, refund);
    const calendar = rate.kind === 'window' ? rate.calendar : undefined;
    const more = (rate.maxDebt > 0 ? DEBT_FOLLOWS : 0) + (calendar === undefined ? 0 : CALENDAR_FOLLOWS);
    const givesBack = ofWindow === undefined ? REFUND : REFUND_OF_WINDOW;
    const what = charge ? CHARGE : refund ? givesBack : hits === 0 ? PEEK : TAKE;
    args.push(String(what + more), ENFORCEMENT[enforcement]);
    if (rate.kind === 'window') {
      args.push(String(-rate.lengthMicros), String(rate.requestsPerUnit));
      args.push(rate.allOrNothing ? '1' : '0', String(hits), '0');
      if (rate.maxDebt > 0) args.push(String(rate.mostCounted), '0');
    } else {
      args.push(String(rate.q), String(rate.fillWhole), String(rate.fillCarry));
      if (charge || refund) {
        const charged = rate.chargedHits(hits);
        args.push(String(costWhole(rate, charged)), String(costCarry(rate, charged)));
      } else {
        // A peek asks for one token more.
        const asked = hits === 0 ? 1 : hits;
        args.push(String(rate.askedWhole(asked)), String(rate.askedCarry(asked)));
      }
      if (rate.maxDebt > 0) args.push(String(rate.debtWhole), String(rate.debtCarry));
    }
    if (what === REFUND_OF_WINDOW) args.push(String(ofWindow));
    if (calendar === undefined) return;
    this.calendars.push({ at: args.length, windows: calendar });
    for (let i = 0; i < BOUNDARIES; i++) args.push('');
  }
}

function equal(
  ask: Ask,
  rate: Rate,
  hits: number,
  refund: boolean,
  enforcement: Enforcement,
  ofWindow: number | undefined,
): boolean {
  return (
    ask.rate === rate &&
    ask.hits === hits &&
    ask.refund === refund &&
    ask.enforcement === enforcement &&
    ask.ofWindow === ofWindow
  );
}
