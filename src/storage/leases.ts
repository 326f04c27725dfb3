import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import { deniesRequest } from '../limiter/decide.js';
import { type Lease, type LeaseCounts, LeasedKey, type LeasedRate, type LeaseRequest } from './leased-key.js';

/** Settings of {@link LeaseStore}. */
export interface LeaseStoreOptions {
  /** The store behind the leases, which supports `Take.count`. */
  readonly store: BucketStore;
  /** Returns the time of this machine's monotonic clock, in microseconds. */
  readonly monotonicMicros: () => number;
}

/** Maximum number of buckets whose takes are counted, in each of two generations. They need about 1 MB. */
export const MAX_LEASED_KEYS = 4096;
/** Maximum number of items whose buckets are compared pairwise. */
const MAX_COMPARED_ITEMS = 16;

/**
 * Decides takes of hot buckets without a call to the store, with tokens that it has taken in advance (*leases*), for
 * limits whose rate has {@link LeasedRate.lease}.
 *
 * - A lease is a number of equal takes in one call. The store never grants more than the bucket holds.
 * - A lease ends `forMicros` after it was asked for, with its window, and when {@link clear} is called. Unspent tokens
 * lapse. Nothing is given back, so caches of other processes stay correct.
 * - If the store cannot grant a lease in full, the bucket is empty. Takes are then denied for a while, even if others
 * have tokens ({@link LeasedKey.pause}).
 * - A request with several items is decided here only if this is possible for all of them.
 * - If the store fails to decide a request, the leases of its buckets end, because the caller may then enforce a share
 * of the limit.
 */
export class LeaseStore implements BucketStore {
  private readonly counts: LeaseCounts = { tripsSaved: 0, tokensLapsed: 0, earlyDenials: 0 };
  private readonly store: BucketStore;
  private readonly monotonicMicros: () => number;
  /**
   * Buckets that were taken from, in two generations. When the young one is full, the old one is dropped, so that a
   * caller who names many buckets removes only those that nobody uses.
   */
  private young = new Map<string, LeasedKey>();
  private old = new Map<string, LeasedKey>();
  /** The buckets of the current request, and their leases; reused. */
  private readonly keys: LeasedKey[] = [];
  private readonly leases: (Lease | undefined)[] = [];

  constructor({ store, monotonicMicros }: LeaseStoreOptions) {
    this.store = store;
    this.monotonicMicros = monotonicMicros;
  }

  serverOf(take: Take): unknown {
    return this.store.serverOf?.(take);
  }

  take(takes: readonly Take[], deadlineMicros: number, mayWait = true): TakeResult | Promise<TakeResult> {
    let leasing = 0;
    for (let i = 0; i < takes.length; i++) if ((takes[i] as Take).rate.lease !== undefined) leasing++;
    if (leasing === 0) return this.store.take(takes, deadlineMicros, mayWait);
    const nowMicros = this.monotonicMicros();
    if (leasing < takes.length || !this.findKeys(takes, nowMicros))
      return this.forward(takes, deadlineMicros, mayWait);
    for (let i = 0; i < takes.length; i++)
      (this.keys[i] as LeasedKey).note((takes[i] as Take).hits, nowMicros);
    return this.decide(takes, deadlineMicros, mayWait, nowMicros);
  }

  /** Number of tokens of a bucket that are leased to this process. */
  tokensOf(key: string): number {
    return this.known(key)?.tokens(this.monotonicMicros()) ?? 0;
  }

  /** Counts since start, with all leases that have ended. */
  get stats(): Readonly<LeaseCounts> {
    const nowMicros = this.monotonicMicros();
    for (const keys of [this.young, this.old]) for (const key of keys.values()) key.tokens(nowMicros);
    return this.counts;
  }

  /** Ends all leases, because the policy has changed, or because others have set buckets. */
  clear(): void {
    for (const keys of [this.young, this.old]) for (const key of keys.values()) key.end();
    this.young = new Map();
    this.old = new Map();
  }

  close(): Promise<void> {
    this.clear();
    return this.store.close();
  }

  /**
   * Finds the buckets of a request. Returns false if leases cannot decide it: refunds, holds, quotas and limits that
   * spill need the store, and so do requests that take from a bucket twice.
   */
  private findKeys(takes: readonly Take[], nowMicros: number): boolean {
    if (takes.length > MAX_COMPARED_ITEMS) return false;
    const { keys } = this;
    for (let i = 0; i < takes.length; i++) {
      const { refund, enforcement, holds, settles } = takes[i] as Take;
      if (refund || holds !== undefined || settles !== undefined) return false;
      if (enforcement !== 'enforce' && enforcement !== 'observe') return false;
      const key = this.keyOf(takes[i] as Take, nowMicros);
      for (let before = 0; before < i; before++) if (keys[before] === key) return false;
      keys[i] = key;
    }
    return true;
  }

  private keyOf({ key: name, rate }: Take, nowMicros: number): LeasedKey {
    const young = this.young.get(name);
    // A reload, or a row of a plan that changed, creates a new rate.
    if (young !== undefined && young.rate === rate) return young;
    let key = young ?? this.old.get(name);
    this.old.delete(name);
    if (key?.rate !== rate) {
      key?.end();
      key = new LeasedKey(rate as LeasedRate, this.counts, nowMicros);
    }
    if (this.young.size >= MAX_LEASED_KEYS) {
      for (const dropped of this.old.values()) dropped.end();
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(name, key);
    return key;
  }

  /** Decides a request whose buckets are {@link keys}. */
  private decide(
    takes: readonly Take[],
    deadlineMicros: number,
    mayWait: boolean,
    nowMicros: number,
  ): TakeResult | Promise<TakeResult> {
    const local = this.answer(takes, nowMicros);
    if (local === undefined) {
      const { request } = this.keys[0] as LeasedKey;
      // One call is enough for all callers that wait for the same tokens.
      if (takes.length === 1 && mayWait && request !== undefined && mayJoin(request, deadlineMicros))
        return new Promise((resolve) => request.waiters.push({ takes, deadlineMicros, resolve }));
    }
    // The take of this request comes first, and shares its step with the lease.
    const result = local ?? this.forward(takes, deadlineMicros, mayWait);
    if (mayWait && !(result instanceof StorageError)) this.ask(takes, deadlineMicros, nowMicros);
    return result;
  }

  /** Returns the outcomes of a request that leases or pauses decide, otherwise undefined. */
  private answer(takes: readonly Take[], nowMicros: number): readonly TakeOutcome[] | undefined {
    const { keys, leases, counts } = this;
    let isDenied = false;
    for (let i = 0; i < takes.length; i++) {
      const { hits, enforcement } = takes[i] as Take;
      const key = keys[i] as LeasedKey;
      leases[i] = key.leaseFor(hits, nowMicros);
      if (leases[i] !== undefined) continue;
      if (hits === 0 || !key.isPaused(nowMicros)) return undefined;
      if (enforcement === 'enforce') isDenied = true;
    }
    const outcomes = new Array<TakeOutcome>(takes.length);
    let isSaved = true;
    for (let i = 0; i < takes.length; i++) {
      const { hits } = takes[i] as Take;
      const lease = leases[i];
      if (lease === undefined) {
        outcomes[i] = (keys[i] as LeasedKey).denial(hits, nowMicros);
        counts.earlyDenials++;
        isSaved = false;
        continue;
      }
      // A denied request takes nothing.
      outcomes[i] = lease.take(hits, isDenied ? 0 : hits, nowMicros);
      if (!isDenied) (keys[i] as LeasedKey).noteAllowed(hits);
      if (!lease.isUsed) isSaved = false;
      lease.isUsed = true;
    }
    if (isSaved) counts.tripsSaved++;
    return outcomes;
  }

  /** Sends a request to the store. */
  private forward(
    takes: readonly Take[],
    deadlineMicros: number,
    mayWait: boolean,
  ): TakeResult | Promise<TakeResult> {
    for (const { key, refund, hits } of takes) if (refund && hits > 0) this.known(key)?.resume();
    const result = this.store.take(takes, deadlineMicros, mayWait);
    // Runs before the handlers of the caller, which are added later.
    if (result instanceof Promise) void result.then((late) => this.noteResult(takes, late));
    else this.noteResult(takes, result);
    return result;
  }

  /** Ends the leases of a request that the store could not decide, otherwise counts its hits if they were allowed. */
  private noteResult(takes: readonly Take[], result: TakeResult): void {
    if (result instanceof StorageError) {
      if (result.reason !== 'full') for (const { key } of takes) this.known(key)?.end();
    } else if (!deniesRequest(takes, result)) {
      for (const [i, { key, hits, refund }] of takes.entries())
        if (!refund && !result[i]?.overLimit) this.known(key)?.noteAllowed(hits);
    }
  }

  private known(key: string): LeasedKey | undefined {
    return this.young.get(key) ?? this.old.get(key);
  }

  /**
   * Asks for leases of the buckets of a request that have little or nothing left, if all buckets are hot enough.
   * Otherwise, the other buckets need a call for each request anyway.
   */
  private ask(takes: readonly Take[], deadlineMicros: number, nowMicros: number): void {
    const { keys } = this;
    let isWanted = false;
    for (let i = 0; i < takes.length; i++) if ((keys[i] as LeasedKey).wantsLease(nowMicros)) isWanted = true;
    if (!isWanted) return;
    const sizes = takes.map((_, i) => (keys[i] as LeasedKey).size(nowMicros));
    // A key is hot with four such requests.
    if (sizes.some((size, i) => size === 0 || size < 2 * (takes[i] as Take).hits)) return;
    for (const [i, take] of takes.entries()) {
      const key = keys[i] as LeasedKey;
      if (!key.wantsLease(nowMicros)) continue;
      const count = sizes[i] as number;
      // A lease that arrives after its end is useless.
      const lastMicros = Math.min(deadlineMicros, nowMicros + key.rate.lease.forMicros);
      const request = { count, sentMicros: nowMicros, deadlineMicros: lastMicros, waiters: [] };
      key.request = request;
      const item: Take = { ...take, hits: 1, count, enforcement: 'observe' };
      const result = this.store.take([item], lastMicros);
      if (result instanceof Promise) void result.then((late) => this.receive(key, request, late));
      else this.receive(key, request, result);
    }
  }

  /** Handles the result of a lease that was asked for, and then decides the requests that wait for it. */
  private receive(key: LeasedKey, request: LeaseRequest, result: TakeResult): void {
    const nowMicros = this.monotonicMicros();
    const outcome = result instanceof StorageError ? undefined : result[0];
    const isUseful = key.receive(request, outcome, nowMicros);
    for (const { takes, deadlineMicros, resolve } of request.waiters) {
      if (result instanceof StorageError && deadlineMicros <= nowMicros) {
        // The store would refuse the request as too late, although it is the store that has not answered.
        this.noteResult(takes, result);
        resolve(result);
      } else if (isUseful && this.findKeys(takes, nowMicros))
        resolve(this.decide(takes, deadlineMicros, true, nowMicros));
      else resolve(this.forward(takes, deadlineMicros, true));
    }
  }
}

/** Returns whether a caller can wait for a lease: it must be decided by its own deadline. */
function mayJoin({ count, deadlineMicros, waiters }: LeaseRequest, callerMicros: number): boolean {
  return callerMicros >= deadlineMicros && waiters.length < count;
}
