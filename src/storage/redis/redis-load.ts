import type { TakeBatch } from './take-batch.js';
import { NARROW_ITEMS } from './wide-takes.js';

/** What an item costs Redis at most, in a request of few and in one of many. Microseconds. */
const ITEM_MICROS = 10;
const WIDE_ITEM_MICROS = 25;
/** Redis that answered something so lately is there, and busy. Microseconds. */
export const LIVELY_MICROS = 250_000;
/** Share of a wait that the work before it has to explain. */
const EXPLAINED = 1 / 4;

/**
 * What Redis was given to do and has not answered. It tells an answer that is late because Redis works for others from one that is late because Redis, or
 * the way to it, is: what is answered in its place is `full` then and not `timeout`, which lets callers pass where a rule says so, so that nobody gets round a
 * limit by keeping Redis busy.
 */
export class RedisLoad {
  /** Time that what is not answered takes Redis. */
  #workMicros = 0;
  #calls = 0;
  /** When Redis is expected to have done all that it was given. */
  #doneMicros = 0;
  /** When Redis answered, or was given something while it had nothing to do. */
  #heardMicros = 0;

  /** A call was sent at `nowMicros`. */
  sent(batch: TakeBatch, nowMicros: number): void {
    if (this.#calls++ === 0) this.#heardMicros = nowMicros;
    const work = workOf(batch);
    this.#workMicros += work;
    // Most of what is not answered may be done, and its answer on the way.
    this.#doneMicros = Math.min(nowMicros + this.#workMicros, Math.max(this.#doneMicros, nowMicros) + work);
    batch.dueMicros = this.#doneMicros;
  }

  /** Redis answered, whatever it was. */
  answered(nowMicros: number): void {
    this.#heardMicros = nowMicros;
  }

  /** Nothing more is expected of a call that was sent. */
  ended(batch: TakeBatch): void {
    this.#calls--;
    this.#workMicros = this.#calls === 0 ? 0 : this.#workMicros - workOf(batch);
  }

  /** Whether Redis answers, as far as is known: while it has nothing to do it does. */
  isLively(nowMicros: number): boolean {
    return this.#calls === 0 || nowMicros - this.#heardMicros < LIVELY_MICROS;
  }

  /** Whether a request since `sinceMicros` that waits at `nowMicros` until its deadline waits for the work before it, its own included. */
  explains(sinceMicros: number, dueMicros: number, deadlineMicros: number, nowMicros: number): boolean {
    if (!this.isLively(nowMicros)) return false;
    return dueMicros - sinceMicros >= EXPLAINED * (deadlineMicros - sinceMicros);
  }
}

function workOf({ itemCount, takeCount }: TakeBatch): number {
  return itemCount * (itemCount > NARROW_ITEMS * takeCount ? WIDE_ITEM_MICROS : ITEM_MICROS);
}
