import type { HoldRecords } from './hold-records.js';
import type { Slot } from './record-arena.js';

/**
 * The holds of one bucket with one lifetime, in the order in which they were placed, which is the order in which they
 * expire.
 */
export class HoldQueue {
  readonly lifetimeMillis: number;
  first: Slot = -1;
  last: Slot = -1;
  readonly #records: HoldRecords;

  constructor(records: HoldRecords, lifetimeMillis: number) {
    this.#records = records;
    this.lifetimeMillis = lifetimeMillis;
  }

  /** Appends a hold. */
  push(slot: Slot): void {
    this.#records.setBefore(slot, this.last);
    this.#records.setAfter(slot, -1);
    if (this.last < 0) this.first = slot;
    else this.#records.setAfter(this.last, slot);
    this.last = slot;
  }

  /** Removes a hold, unless it was removed before. */
  remove(slot: Slot): void {
    if (!this.#has(slot)) return;
    const before = this.#records.beforeOf(slot);
    const after = this.#records.afterOf(slot);
    this.#link(before, after);
    this.#records.setBefore(slot, -1);
    this.#records.setAfter(slot, -1);
  }

  /** Records that a hold has a new number. */
  renumbered(slot: Slot, from: Slot): void {
    const isFirst = this.first === from;
    const isLast = this.last === from;
    const before = this.#records.beforeOf(slot);
    const after = this.#records.afterOf(slot);
    if (isFirst) this.first = slot;
    if (isLast) this.last = slot;
    if (before >= 0) this.#records.setAfter(before, slot);
    if (after >= 0) this.#records.setBefore(after, slot);
  }

  /** Returns whether a hold is in the queue. A hold without neighbors may have been removed. */
  #has(slot: Slot): boolean {
    return this.first === slot || this.#records.beforeOf(slot) >= 0;
  }

  #link(before: Slot, after: Slot): void {
    if (before < 0) this.first = after;
    else this.#records.setAfter(before, after);
    if (after < 0) this.last = before;
    else this.#records.setBefore(after, before);
  }
}
