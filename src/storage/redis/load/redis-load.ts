import { expectState } from '../../../invariant.js';
import { MAX_SMALL_ITEMS } from '../large-take-queue.js';
import type { TakeBatch } from '../take-batch.js';

/** Maximum cost of an item in Redis, in small and in large requests, in microseconds. */
const ITEM_MICROS = 10;
const LARGE_ITEM_MICROS = 25;
/**
 * Additional cost of a call, including reading it and replying, in microseconds. A call with a single item, which is
 * usual in a Redis Cluster, takes 7 to 14 µs in total.
 */
const CALL_MICROS = 5;
/** Time since the latest reply within which Redis counts as busy but responsive, in microseconds. */
export const RESPONSIVE_MICROS = 250_000;
/** Minimum fraction of a wait that earlier work must account for. */
const MIN_WORK_SHARE = 1 / 4;
/** Work after which the weight of earlier measurements of the pace is halved, in microseconds. */
const PACE_WINDOW_MICROS = 50_000;
/**
 * Length of a window in which the minimum round-trip time is measured, in microseconds. The current and the previous
 * window count.
 */
const RTT_WINDOW_MICROS = 10_000_000;
/** Minimum new work that is reported to other processes, in microseconds. Usual calls take less. */
const MIN_REPORTED_MICROS = 2000;

/**
 * The outstanding work of Redis, from this process and from other processes that report it. It distinguishes a reply
 * that is late because Redis is busy from a reply that is late because of a fault of Redis or the network. If Redis is
 * busy, the failure is `full` and not `timeout`. A rule's failure policy may allow requests after a `timeout`, so
 * callers could get around a limit by keeping Redis busy.
 */
export class RedisLoad {
  /** Estimated time of the unanswered calls in Redis. */
  #workMicros = 0;
  #calls = 0;
  /** When Redis is expected to have finished all of its work. */
  #doneMicros = 0;
  /**
   * Measured time of calls, and their maximum time, both with exponential decay, because Redis may be much faster than
   * the maximum.
   */
  #tookMicros = 0;
  #expectedMicros = 0;
  /** When the previous reply arrived. */
  #measuredMicros = 0;
  /** Minimum round-trip times in the previous and the current window. */
  #previousMinRttMicros = Infinity;
  #minRttMicros = Infinity;
  #rttWindowEndMicros = -Infinity;
  /** When Redis last replied, or received a call while it was idle. */
  #lastReplyMicros = 0;
  readonly #report: (micros: number) => void;
  /** Time until which other processes know that Redis works for this process. */
  #reportedUntilMicros = 0;
  /** Time until which Redis works for each of the other processes that share a port. */
  readonly #busyUntil = new Map<number, number>();
  /** Total work that other processes have reported. */
  #otherWorkMicros = 0;

  /**
   * `report` tells the other processes for how many microseconds from now Redis is expected to work for this process.
   */
  constructor(report: (micros: number) => void = () => {}) {
    this.#report = report;
  }

  /** Records a call that was sent at `nowMicros`. */
  sent(batch: TakeBatch, nowMicros: number): void {
    if (this.#calls++ === 0) this.#lastReplyMicros = nowMicros;
    const work = workOf(batch);
    batch.sentMicros = nowMicros;
    this.#workMicros += work;
    // Redis may have done most of the unanswered work, with the replies on their way.
    this.#doneMicros = Math.min(nowMicros + this.#workMicros, Math.max(this.#doneMicros, nowMicros) + work);
    batch.dueMicros = this.#doneMicros;
    batch.otherWorkMicros = this.#otherWorkDoneMicros(nowMicros);
    if (this.#doneMicros - Math.max(this.#reportedUntilMicros, nowMicros) < MIN_REPORTED_MICROS) return;
    this.#reportedUntilMicros = this.#doneMicros;
    this.#report(this.#doneMicros - nowMicros);
  }

  /** Records that Redis is expected to work for the process `from` for `micros`, starting at `nowMicros`. */
  addOtherWork(from: number, micros: number, nowMicros: number): void {
    const knownMicros = Math.max(nowMicros, this.#busyUntil.get(from) ?? 0);
    const endMicros = nowMicros + micros;
    if (endMicros <= knownMicros) return;
    this.#otherWorkMicros += endMicros - knownMicros;
    this.#busyUntil.set(from, endMicros);
  }

  /** Records any reply of Redis. */
  answered(nowMicros: number): void {
    this.#lastReplyMicros = nowMicros;
  }

  /** Records the reply to a call, and measures Redis's pace. */
  replied(batch: TakeBatch, nowMicros: number): void {
    const fromMicros = this.#measuredMicros;
    this.#measuredMicros = nowMicros;
    const rttMicros = Math.min(this.#previousMinRttMicros, this.#minRttMicros);
    this.#noteRoundTrip(nowMicros - batch.sentMicros, nowMicros);
    if (rttMicros === Infinity) return;
    // Redis started the call after the previous one, or when it arrived. Both times include the way back.
    const startMicros = Math.max(fromMicros, batch.sentMicros + rttMicros);
    const workMicros = workOf(batch);
    const tookMicros = Math.min(Math.max(0, nowMicros - startMicros), workMicros);
    // Weighted by work. Otherwise, many small requests would displace the pace of large ones.
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
   * Returns the estimated wait of a call sent at `nowMicros` behind earlier calls at the measured pace, in
   * microseconds.
   */
  queueMicros(nowMicros: number): number {
    if (this.#calls === 0 || this.#expectedMicros === 0) return 0;
    const maxMicros = Math.min(this.#workMicros, this.#doneMicros - nowMicros);
    return Math.max(0, maxMicros) * (this.#tookMicros / this.#expectedMicros);
  }

  /** Records that a sent call has ended. */
  ended(batch: TakeBatch): void {
    this.#calls--;
    expectState(this.#calls >= 0, 'a call to Redis ends only once');
    this.#workMicros = this.#calls === 0 ? 0 : this.#workMicros - workOf(batch);
  }

  /** When Redis last replied or was idle. */
  get lastReplyMicros(): number {
    return this.#lastReplyMicros;
  }

  /** Returns whether Redis is responsive, as far as is known. An idle Redis counts as responsive. */
  isResponsive(nowMicros: number): boolean {
    return this.#calls === 0 || nowMicros - this.#lastReplyMicros < RESPONSIVE_MICROS;
  }

  /**
   * Returns whether a call that waits at `nowMicros` until its deadline waits for work: earlier calls, its own work,
   * and work of other processes.
   */
  isDueToWork(batch: TakeBatch, deadlineMicros: number, nowMicros: number): boolean {
    if (!this.isResponsive(nowMicros)) return false;
    const { sinceMicros, sentMicros, dueMicros } = batch;
    // A call that was not sent waits for other calls of this process.
    if (sentMicros === 0) return true;
    const workMicros = dueMicros - sinceMicros + this.otherWorkSince(batch, nowMicros);
    return workMicros >= MIN_WORK_SHARE * (deadlineMicros - sinceMicros);
  }

  /** Returns the reported work that Redis has done for other processes since a call was sent, in microseconds. */
  otherWorkSince({ otherWorkMicros: othersMicros }: TakeBatch, nowMicros: number): number {
    return this.#otherWorkDoneMicros(nowMicros) - othersMicros;
  }

  /** Returns the reported work that Redis has done for other processes so far. */
  #otherWorkDoneMicros(nowMicros: number): number {
    let doneMicros = this.#otherWorkMicros;
    for (const endMicros of this.#busyUntil.values()) doneMicros -= Math.max(0, endMicros - nowMicros);
    return doneMicros;
  }
}

function workOf({ itemCount, takeCount, load }: TakeBatch): number {
  const itemMicros = itemCount > MAX_SMALL_ITEMS * takeCount ? LARGE_ITEM_MICROS : ITEM_MICROS;
  // Items with many slots have a larger load.
  return CALL_MICROS + Math.max(itemCount, load) * itemMicros;
}
