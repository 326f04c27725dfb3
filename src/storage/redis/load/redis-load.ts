import { expectState } from '../../../invariant.js';
import { MAX_SMALL_ITEMS } from '../large-take-queue.js';
import type { TakeBatch } from '../take-batch.js';

/** What an item costs Redis at most, in a request of few and in one of many. Microseconds. */
const ITEM_MICROS = 10;
const LARGE_ITEM_MICROS = 25;
/**
 * What a call costs besides, with what Redis does to read it and to answer: one of a single item, as most are to a
 * Redis Cluster, takes 7 to 14 µs in all. Microseconds.
 */
const CALL_MICROS = 5;
/** Redis that answered something so lately is there, and busy. Microseconds. */
export const RESPONSIVE_MICROS = 250_000;
/** Share of a wait that the work before it has to explain. */
const MIN_WORK_SHARE = 1 / 4;
/** What was learnt about its pace counts half after so much more work. Microseconds. */
const PACE_WINDOW_MICROS = 50_000;
/** The shortest way to Redis is that of the last one or two stretches of so long. Microseconds. */
const RTT_WINDOW_MICROS = 10_000_000;
/** Other processes are told of so much work at a time. Usual calls are shorter. Microseconds. */
const MIN_REPORTED_MICROS = 2000;

/**
 * What Redis was given to do and has not answered, by this process and by those that tell. It tells an answer that is
 * late because Redis works for others from one that is late because Redis, or the way to it, is: what is answered in
 * its place is `full` then and not `timeout`, which lets callers pass where a rule says so, so that nobody gets round a
 * limit by keeping Redis busy.
 */
export class RedisLoad {
  /** Time that what is not answered takes Redis. */
  #workMicros = 0;
  #calls = 0;
  /** When Redis is expected to have done all that it was given. */
  #doneMicros = 0;
  /**
   * What calls took Redis, of the time that they take at most, and that time itself, both fading: Redis may be much
   * faster than it has to be.
   */
  #tookMicros = 0;
  #expectedMicros = 0;
  /** When the answer before came. */
  #measuredMicros = 0;
  /** Shortest time until an answer, in the stretch before and in this one: the way to Redis and back. */
  #previousMinRttMicros = Infinity;
  #minRttMicros = Infinity;
  #rttWindowEndMicros = -Infinity;
  /** When Redis answered, or was given something while it had nothing to do. */
  #lastReplyMicros = 0;
  readonly #report: (micros: number) => void;
  /** Until when others know that Redis works for this process. */
  #reportedUntilMicros = 0;
  /** Until when Redis works for each of the other processes: those that share a port. */
  readonly #busyUntil = new Map<number, number>();
  /** All work that they told of. */
  #otherWorkMicros = 0;

  /** `tell` is for the other processes: Redis is expected to work for this one for so many microseconds from now. */
  constructor(report: (micros: number) => void = () => {}) {
    this.#report = report;
  }

  /** A call was sent at `nowMicros`. */
  sent(batch: TakeBatch, nowMicros: number): void {
    if (this.#calls++ === 0) this.#lastReplyMicros = nowMicros;
    const work = workOf(batch);
    batch.sentMicros = nowMicros;
    this.#workMicros += work;
    // Most of what is not answered may be done, and its answer on the way.
    this.#doneMicros = Math.min(nowMicros + this.#workMicros, Math.max(this.#doneMicros, nowMicros) + work);
    batch.dueMicros = this.#doneMicros;
    batch.otherWorkMicros = this.#otherWorkDoneMicros(nowMicros);
    if (this.#doneMicros - Math.max(this.#reportedUntilMicros, nowMicros) < MIN_REPORTED_MICROS) return;
    this.#reportedUntilMicros = this.#doneMicros;
    this.#report(this.#doneMicros - nowMicros);
  }

  /** Process `from` told, by `nowMicros`, that Redis is expected to work for it for so many microseconds. */
  addOtherWork(from: number, micros: number, nowMicros: number): void {
    const knownMicros = Math.max(nowMicros, this.#busyUntil.get(from) ?? 0);
    const endMicros = nowMicros + micros;
    if (endMicros <= knownMicros) return;
    this.#otherWorkMicros += endMicros - knownMicros;
    this.#busyUntil.set(from, endMicros);
  }

  /** Redis answered, whatever it was. */
  answered(nowMicros: number): void {
    this.#lastReplyMicros = nowMicros;
  }

  /** Redis answered a call with a reply: learns how fast it is. */
  replied(batch: TakeBatch, nowMicros: number): void {
    const fromMicros = this.#measuredMicros;
    this.#measuredMicros = nowMicros;
    const rttMicros = Math.min(this.#previousMinRttMicros, this.#minRttMicros);
    this.#noteRoundTrip(nowMicros - batch.sentMicros, nowMicros);
    if (rttMicros === Infinity) return;
    // Redis began with it when it had done the one before, or had got it: both with the way back.
    const startMicros = Math.max(fromMicros, batch.sentMicros + rttMicros);
    const workMicros = workOf(batch);
    const tookMicros = Math.min(Math.max(0, nowMicros - startMicros), workMicros);
    // By work: else the pace of large requests was forgotten over as many small ones.
    const kept = PACE_WINDOW_MICROS / (PACE_WINDOW_MICROS + workMicros);
    this.#tookMicros = this.#tookMicros * kept + tookMicros;
    this.#expectedMicros = this.#expectedMicros * kept + workMicros;
  }

  #noteRoundTrip(micros: number, nowMicros: number): void {
    if (nowMicros >= this.#rttWindowEndMicros) {
      this.#rttWindowEndMicros = nowMicros + RTT_WINDOW_MICROS;
      this.#previousMinRttMicros = this.#minRttMicros;
      this.#minRttMicros = micros;
    } else if (micros < this.#minRttMicros) this.#minRttMicros = micros;
  }

  /**
   * How long a call that Redis is given at `nowMicros` waits for those before it, as far as is known of Redis's pace.
   * Microseconds.
   */
  queueMicros(nowMicros: number): number {
    if (this.#calls === 0 || this.#expectedMicros === 0) return 0;
    const maxMicros = Math.min(this.#workMicros, this.#doneMicros - nowMicros);
    return Math.max(0, maxMicros) * (this.#tookMicros / this.#expectedMicros);
  }

  /** Nothing more is expected of a call that was sent. */
  ended(batch: TakeBatch): void {
    this.#calls--;
    expectState(this.#calls >= 0, 'a call to Redis ends once');
    this.#workMicros = this.#calls === 0 ? 0 : this.#workMicros - workOf(batch);
  }

  /** When Redis was last heard of. */
  get lastReplyMicros(): number {
    return this.#lastReplyMicros;
  }

  /** Whether Redis answers, as far as is known: while it has nothing to do it does. */
  isResponsive(nowMicros: number): boolean {
    return this.#calls === 0 || nowMicros - this.#lastReplyMicros < RESPONSIVE_MICROS;
  }

  /**
   * Whether what is in this call, and waits at `nowMicros` until its deadline, waits for work: what was before it, its
   * own, and that of others.
   */
  isDueToWork(batch: TakeBatch, deadlineMicros: number, nowMicros: number): boolean {
    if (!this.isResponsive(nowMicros)) return false;
    const { sinceMicros, sentMicros, dueMicros } = batch;
    // What was not sent waits for others of this process.
    if (sentMicros === 0) return true;
    const workMicros = dueMicros - sinceMicros + this.otherWorkSince(batch, nowMicros);
    return workMicros >= MIN_WORK_SHARE * (deadlineMicros - sinceMicros);
  }

  /** What Redis has done for others since it was given a call, as far as they told. Microseconds. */
  otherWorkSince({ otherWorkMicros: othersMicros }: TakeBatch, nowMicros: number): number {
    return this.#otherWorkDoneMicros(nowMicros) - othersMicros;
  }

  /** What Redis has done for others until now, as far as they told. */
  #otherWorkDoneMicros(nowMicros: number): number {
    let doneMicros = this.#otherWorkMicros;
    for (const endMicros of this.#busyUntil.values()) doneMicros -= Math.max(0, endMicros - nowMicros);
    return doneMicros;
  }
}

function workOf({ itemCount, takeCount }: TakeBatch): number {
  return (
    CALL_MICROS + itemCount * (itemCount > MAX_SMALL_ITEMS * takeCount ? LARGE_ITEM_MICROS : ITEM_MICROS)
  );
}
