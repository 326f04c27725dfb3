import type { Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { deniesRequest } from '../../../src/limiter/decide.js';
import type { SettledHold } from '../../../src/limiter/holds/hold.js';
import { expectEqual } from '../assert/quick-expect.js';

/** A hold in the model. */
interface ModelHold {
  readonly id: string;
  readonly key: string;
  readonly hits: number;
  readonly lifetimeMillis: number;
  /** As the store reported it. */
  readonly fullAtMicros: number;
  readonly refillMicros: number;
  readonly takenMicros: number;
  readonly endMicros: number;
  /** The take, for a hold that gives its hits back when it expires. */
  readonly frees: Take | undefined;
}

/**
 * A model of holds. It keeps all holds in one map and computes each bucket from numbers: the slots in use, the time at
 * which a token bucket is full, or the hits of the current window. It covers token buckets whose tokens take whole
 * microseconds, and windows without debt; the items of other rates count as the store decided them.
 */
export class HoldModel {
  readonly #holds = new Map<string, ModelHold>();
  #levels = new Map<string, number>();

  /** Decides a request, and compares the result with the outcomes of a store. */
  check(takes: readonly Take[], found: readonly TakeOutcome[], nowMicros: number): void {
    for (const { key } of takes) this.#levels.delete(`${key} slots`);
    this.#freeExpired(nowMicros);
    const before = new Map(this.#levels);
    const settled = takes.map(({ key, settles }) => settles && this.#find(settles, key, nowMicros));
    const limited = takes.map(
      (take, i) => this.#apply(take, nowMicros) ?? (found[i] as TakeOutcome).overLimit,
    );
    const denied = deniesRequest(
      takes,
      limited.map((isLimited) => ({ overLimit: isLimited })),
    );
    if (denied) this.#levels = before;
    const effects = takes.map(({ key, rate, hits, holds, settles }, i) => {
      if (settles !== undefined) return settled[i] === undefined ? 'unknown' : 'settled';
      if (holds === undefined || hits === 0 || denied || (limited[i] && rate.kind !== 'concurrency'))
        return undefined;
      const { id, lifetimeMillis } = holds;
      const { fullAtMicros = 0, refillMicros = 0 } = found[i] as TakeOutcome;
      const endMicros = nowMicros + 1000 * lifetimeMillis;
      const frees = holds.freesUnknown === true ? (takes[i] as Take) : undefined;
      const values = { id, key, hits, lifetimeMillis, fullAtMicros, refillMicros, takenMicros: nowMicros };
      this.#holds.set(id, { ...values, endMicros, frees });
      return 'placed';
    });
    for (const hold of settled) if (hold !== undefined) this.#holds.delete(hold.id);
    expectEqual(
      found.map(({ overLimit: isLimited, hold, heldHits }) => ({ isLimited, hold, heldHits })),
      takes.map(({ settles }, i) => {
        const heldHits = settles === 'oldest' ? settled[i]?.hits : undefined;
        return { isLimited: limited[i], hold: effects[i], heldHits };
      }),
    );
  }

  /** Settles the holds that give their hits back with a use of 0, at the time at which each of them has expired. */
  #freeExpired(nowMicros: number): void {
    const expired = [...this.#holds.values()].filter((one) => one.frees && one.endMicros <= nowMicros);
    for (const hold of expired.sort((one, other) => one.endMicros - other.endMicros)) {
      const { id, hits: amount, lifetimeMillis, fullAtMicros, endMicros, frees } = hold;
      const settles = { id, amount, lifetimeMillis, fullAtMicros, freesUnknown: true };
      this.#apply({ ...(frees as Take), refund: true, settles }, endMicros, hold);
      this.#holds.delete(id);
    }
  }

  /** Applies an item. Returns whether it is limited; undefined if the model does not cover its rate. */
  #apply(take: Take, nowMicros: number, expired?: ModelHold): boolean | undefined {
    const { key, rate, settles } = take;
    let { hits, refund } = take;
    const hold = settles === undefined ? undefined : (expired ?? this.#find(settles, key, nowMicros));
    if (rate.kind === 'concurrency') {
      let inFlight = 0;
      for (const one of this.#holds.values())
        if (one.key === key && one.endMicros > nowMicros) inFlight += one.hits;
      return settles === undefined && inFlight + this.#ownSlots(take) > rate.max;
    }
    const isCovered = rate.kind === 'window' ? rate.maxDebt === 0 : rate.refillDenominator === 1;
    if (!isCovered) return undefined;
    if (settles !== undefined && hold === undefined) return false;
    const isStart = settles === undefined;
    if (settles === 'oldest' && hold !== undefined) {
      refund = hits <= hold.hits;
      hits = Math.abs(hits - hold.hits);
    }
    if (rate.kind === 'window') {
      const window = `${key} ${rate.startOf(nowMicros)}`;
      const count = this.#levels.get(window) ?? 0;
      if (isStart && count + hits > rate.requestsPerUnit) return true;
      const isCurrent = hold === undefined || rate.startOf(hold.takenMicros) === rate.startOf(nowMicros);
      const change = refund ? -hits : Math.min(hits, rate.requestsPerUnit - count);
      if (isCurrent) this.#levels.set(window, Math.max(0, count + change));
      return false;
    }
    // The time at which the bucket is full.
    const full = Math.max(nowMicros, this.#levels.get(key) ?? 0);
    const cost = hits * rate.refillNumerator;
    if (isStart && full + Math.max(1, hits) * rate.refillNumerator > nowMicros + rate.fillWhole) return true;
    if (!refund) this.#levels.set(key, Math.min(full + cost, nowMicros + rate.debtWhole));
    else if (hold !== undefined && (rate.maxDebt === 0 || full < hold.takenMicros + rate.debtWhole)) {
      const refillsAtMicros = hold.fullAtMicros + hold.hits * rate.refillNumerator;
      const back = Math.min(cost, Math.max(0, refillsAtMicros - nowMicros));
      this.#levels.set(key, Math.max(nowMicros, full - back));
    }
    return false;
  }

  /** Returns the slots that this item and earlier items of the same request need. A peek needs one. */
  #ownSlots({ key, hits, holds }: Take): number {
    const request = `${key} slots`;
    const earlier = this.#levels.get(request) ?? 0;
    if (holds !== undefined) this.#levels.set(request, earlier + hits);
    return earlier + Math.max(1, hits);
  }

  #find(settles: SettledHold, key: string, nowMicros: number): ModelHold | undefined {
    if (settles === 'oldest') {
      const own = [...this.#holds.values()].filter((one) => one.key === key && one.endMicros > nowMicros);
      return own.sort((one, other) => one.endMicros - other.endMicros)[0];
    }
    const hold = this.#holds.get(settles.id);
    if (hold === undefined || hold.key !== key || hold.endMicros <= nowMicros) return undefined;
    const { amount, lifetimeMillis, fullAtMicros, refillMicros } = settles;
    const isSame =
      hold.hits === amount &&
      hold.lifetimeMillis === lifetimeMillis &&
      hold.fullAtMicros === fullAtMicros &&
      hold.refillMicros === refillMicros;
    return isSame ? hold : undefined;
  }
}
