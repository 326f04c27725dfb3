import type { Descriptor, RateLimitRequest } from '../../codec/messages.js';
import {
  type BucketStore,
  type LocalStore,
  StorageError,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { Entry } from '../../limiter/entry.js';
import { answerOf } from '../../limiter/failure-policy.js';
import { type HoldId, hasBoundId } from '../../limiter/holds/hold.js';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import type { Rule } from '../../policy/rule.js';
import { append } from '../../runtime/append.js';
import { TurnScheduler, turn } from '../../runtime/turns.js';
import type { AnswerOptions } from '../answer/answer-options.js';
import type { DecisionCounts, HoldCounts } from '../decision-observer.js';
import { applyReplacesAndQuotas } from '../enforcement.js';
import { type HoldRecord, MAX_RECORDED_HOLDS } from '../record/decision-record.js';
import type { MatchedTake, RequestContext, TokenResults } from '../request-context.js';
import { askStore } from '../store-failure.js';
import { heldRule, heldRuleOf } from './held-rules.js';
import {
  AUTHENTIC,
  type EndProperties,
  HoldSettlement,
  NOT_AUTHENTIC,
  oldestHold,
} from './hold-settlement.js';
import {
  decodeToken,
  encodeToken,
  HOLDS_THAT_FIT,
  MAX_TOKEN_CHARACTERS,
  MAX_TOKENS_CHARACTERS,
  maxTokenLength,
  type PlacedHold,
  type TokenHold,
  TokenSource,
} from './hold-token.js';
import { PlacedHolds, type PlacedRequest } from './placed-holds.js';
import { SettlementQueue, type SettlementResult } from './settlement-queue.js';
import type { TokenMac } from './token-mac.js';

/**
 * Maximum work of the settlements that weir sends immediately for one request. A single settlement may be more work.
 */
export const MAX_WORK_AT_ONCE = 128;

/**
 * Maximum number of holds that weir releases after resets in one turn of the event loop. One call may have more holds.
 */
const RELEASES_PER_TURN = 128;

/** The use that a request reports with a token, and the results of settling the token. */
interface TokenUse {
  readonly token: string;
  used: number | undefined;
  readonly records: HoldRecord[];
}

/** Dependencies of {@link Holds}. */
export interface HoldsOptions {
  readonly store: BucketStore;
  readonly local: LocalStore;
  readonly clock: Clock;
  readonly counts: HoldCounts;
  readonly observer: { readonly counts: Pick<DecisionCounts, 'uncollected'> };
  readonly answers: Pick<AnswerOptions, 'holdNames'>;
  readonly tokenMac: TokenMac;
  readonly policies: { current(): PolicySet | undefined };
  /** Maximum time for a store call, in microseconds. */
  readonly storeTimeoutMicros: number;
}

/**
 * Manages the holds of requests from start to end. If a request places holds, the dynamic metadata of its answer
 * contains one token for all of them. Envoy sends the token back as an entry when the request ends, and any replica can
 * then settle the holds.
 */
export class Holds {
  readonly #options: HoldsOptions;
  readonly #late: SettlementQueue;
  readonly #placed = new PlacedHolds((request) => this.#releaseInTurn(request));
  /** When a connection closes, all of its calls are reset. Releasing their holds must not delay other callers. */
  readonly #releases = new TurnScheduler<() => void>({
    budget: RELEASES_PER_TURN,
    serve: (release) => release(),
  });

  constructor(options: HoldsOptions) {
    this.#options = options;
    this.#late = new SettlementQueue(
      options.clock,
      (settlement) => this.#send(settlement),
      (settlement, result) => this.#report(settlement, result),
      (settlement) => (settlement.isLocal ? undefined : options.store.serverOf?.(settlement.item())),
    );
  }

  /**
   * Settles the holds of the tokens in a request, even if weir refuses the request later. Descriptors with the same
   * token are one settlement, and the first of them that has its own hits determines the use. weir repeats a failed
   * settlement until its hold expires. The request does not wait for settlements beyond {@link MAX_WORK_AT_ONCE}. If a
   * request exceeds a bound and its use was not read, the store keeps the hits even with `unknown: free`. Otherwise,
   * callers could get their hits back by sending long headers. Returns undefined if the request has no token.
   */
  settle(
    { descriptors, exceeded }: RateLimitRequest,
    policy: CompiledPolicy,
    connection: unknown,
  ): TokenResults | undefined {
    const ends: HoldRecord[][] = [];
    const uses: TokenUse[] = [];
    // Most requests settle one hold. A map would have to hash its token, which is long.
    const byToken = descriptors.length > 1 ? new Map<string, TokenUse>() : undefined;
    for (let i = 0; i < descriptors.length; i++) {
      const descriptor = descriptors[i] as Descriptor;
      const token = this.#tokenOf(descriptor);
      if (token === undefined) continue;
      const records: HoldRecord[] = [];
      ends[i] = records;
      const known = byToken?.get(token);
      if (known !== undefined) {
        known.used ??= descriptor.hitsAddend;
        continue;
      }
      const use = { token, used: descriptor.hitsAddend, records };
      uses.push(use);
      byToken?.set(token, use);
    }
    if (uses.length === 0) return undefined;
    const running: Promise<void>[] = [];
    let characters = 0;
    let work = 0;
    for (const { token, used, records } of uses) {
      characters += token.length;
      const holds = characters > MAX_TOKENS_CHARACTERS ? [undefined] : decodeToken(token);
      const source = new TokenSource(token, holds, this.#options.tokenMac);
      for (const hold of holds) {
        const kept = exceeded === undefined ? undefined : hold?.amount;
        const use = { source, connection, used: used ?? kept, records };
        work += this.#settleHold(policy, hold, use, running, work >= MAX_WORK_AT_ONCE);
      }
    }
    return { ends, done: allOf(running) };
  }

  /**
   * Settles the oldest holds for the ends of requests that a call reports to rules with `pair: oldest`. The work that
   * is done immediately has the same bound as for tokens. A failed settlement is repeated only if it is certain that
   * the store has not executed it. Returns undefined if there is nothing to wait for.
   */
  settleOldest({ states, policy, caller }: RequestContext): Promise<unknown> | undefined {
    const { domain } = policy;
    const { connection } = caller;
    const running: Promise<void>[] = [];
    let work = 0;
    for (const state of states) {
      if (state.oldestSettlements.length === 0) continue;
      const records: HoldRecord[] = [];
      // Any caller can report such a settlement, so it is not an own settlement.
      const common = { domain, cause: 'request', source: NOT_AUTHENTIC, connection, records } as const;
      state.settlementRecords = records;
      for (const take of state.oldestSettlements) {
        const held = heldRule(take.rule as Rule);
        const settlement = new HoldSettlement(oldestHold(take), { ...common, held, used: take.hits });
        this.#end(settlement, work >= MAX_WORK_AT_ONCE, running);
        work += settlement.work;
      }
    }
    return allOf(running);
  }

  /** Returns whether the holds of a request fit into a token of the length that replicas accept. */
  fitIntoToken(takes: readonly MatchedTake[]): boolean {
    if (takes.length <= HOLDS_THAT_FIT) return true;
    const placed = takes.flatMap(({ key, rule, holds }) =>
      holds !== undefined && rule?.hold?.pair === 'token' ? [{ key, terms: holds.terms }] : [],
    );
    return maxTokenLength(placed) <= MAX_TOKEN_CHARACTERS;
  }

  /**
   * Settles the holds of rules with `pair: oldest` that a call ends, as far as the call is planned, if weir does not
   * decide the call.
   */
  settlePlanned(context: RequestContext): void {
    if (!context.policy.hasHolds) return;
    applyReplacesAndQuotas(context);
    void this.settleOldest(context);
  }

  /**
   * Adds the token of a decided request to its context, and lets its caller release the holds by a reset. Settles the
   * holds that the store has abandoned. `isLocal`: the local buckets decided the request.
   */
  notePlaced(context: RequestContext, isLocal: boolean): void {
    let holds: PlacedHold[] = [];
    let named: PlacedHold[] = [];
    for (const take of context.takes) {
      if (take.outcome?.hold === 'abandoned') this.#endAbandoned(context, take, take.outcome);
      const hold = take.outcome?.hold === 'placed' ? tokenHold(take, isLocal) : undefined;
      if (hold === undefined) continue;
      holds = append(holds, hold);
      if (take.rule?.hold?.pair === 'token') named = append(named, hold);
    }
    if (holds.length === 0) return;
    if (named.length > 0) context.token = encodeToken(named, this.#options.tokenMac);
    // A connection with little traffic keeps its listeners for a long time. They must not keep the policy and the rows
    // of its plans in memory after a reload has replaced them.
    const { policy, caller } = context;
    const placedMicros = this.#options.clock.monotonicMicros();
    caller.resetListener = this.#placed.add(policy.domain, caller.connection, placedMicros, holds);
  }

  /**
   * Settles the holds of a request that the store did not answer, because the store may have placed them, and the
   * caller gets no token for them.
   */
  abandon(context: RequestContext, { unsent, abandoned }: StorageError): void {
    if (abandoned === undefined && unsent) return;
    for (const [i, take] of context.takes.entries()) {
      const outcome = abandoned?.[i];
      if (abandoned === undefined || outcome?.hold === 'abandoned')
        this.#endAbandoned(context, take, outcome);
    }
  }

  /**
   * Settles a hold whose token no caller receives, as soon as the store responds. If the store did not answer when the
   * hold was placed, a hold of a token bucket can only expire, because weir does not know all of its values.
   */
  #endAbandoned(
    { policy, caller }: RequestContext,
    take: MatchedTake,
    outcome: MatchedTake['outcome'] | undefined,
  ): void {
    if (take.rate.kind === 'token_bucket' && outcome?.fullAtMicros === undefined) return;
    const hold = tokenHold(take, false, outcome);
    const held = hold && heldRuleOf(policy, hold);
    if (hold === undefined || held === undefined) return;
    const isPlaced = outcome?.fullAtMicros !== undefined;
    const cause = isPlaced ? 'abandoned' : 'unanswered';
    const source = isPlaced ? AUTHENTIC : NOT_AUTHENTIC;
    const { domain } = policy;
    const { connection } = caller;
    void this.#late.add(new HoldSettlement(hold, { domain, held, cause, source, connection, used: 0 }));
  }

  /** Waits for releases, and for settlements that no request waits for; see {@link SettlementQueue.drain}. */
  async drain(graceMs: number): Promise<number> {
    const { clock } = this.#options;
    const endMicros = clock.monotonicMicros() + graceMs * 1000;
    while (this.#releases.size > 0 && clock.monotonicMicros() < endMicros) await turn();
    return this.#late.drain(Math.max(0, (endMicros - clock.monotonicMicros()) / 1000));
  }

  #tokenOf({ entries }: Descriptor): string | undefined {
    const { entry } = this.#options.answers.holdNames;
    for (let i = 0; i < entries.length; i++) {
      const { key, value } = entries[i] as Entry;
      if (key === entry) return value;
    }
    return undefined;
  }

  /** Settles a hold of a token, and returns its work. `hold` is undefined if the token is malformed. */
  #settleHold(
    policy: CompiledPolicy,
    hold: TokenHold | undefined,
    use: Pick<EndProperties, 'source' | 'connection' | 'used' | 'records'>,
    running: Promise<void>[],
    isDeferred: boolean,
  ): number {
    const { domain } = policy;
    const held = hold && heldRuleOf(policy, hold);
    if (hold === undefined || held === undefined) {
      const kind = hold === undefined ? 'malformed' : 'unknown';
      this.#options.counts.unsettled(domain, kind);
      record(use.records, { event: kind });
      return 1;
    }
    const settlement = new HoldSettlement(hold, { domain, held, cause: 'request', ...use });
    this.#end(settlement, isDeferred, running);
    return settlement.work;
  }

  /** Settles a hold immediately, or later if its request has already sent enough settlements. */
  #end(settlement: HoldSettlement, isDeferred: boolean, running: Promise<void>[]): void {
    const sent = isDeferred ? this.#late.defer(settlement) : this.#late.add(settlement);
    if (sent !== undefined) running.push(sent);
  }

  /**
   * Counts the results of a settlement, and records the first result for its request. A hold counts as settled only if
   * the store confirms it. If the store executed an earlier attempt but its answer was lost, the store no longer knows
   * the hold.
   */
  #report(settlement: HoldSettlement, result: SettlementResult): void {
    const { counts, observer } = this.#options;
    const { domain, cause, used, records } = settlement;
    const { path: rule } = settlement.held.rule;
    // The request does not wait for later results.
    settlement.records = undefined;
    if (result === 'waiting' || result === 'lost') {
      // If the token is invented, there is no hold to lose. The same may be true if the store did not answer the start.
      const isLoss = settlement.id === undefined || settlement.source.isAuthentic();
      if (result === 'lost' && isLoss) counts.lost(domain, rule);
      else if (result === 'lost' && cause === 'request') counts.unsettled(domain, 'unverified');
      record(
        records,
        { event: result, rule, ...(settlement.id && { hits: settlement.amount }), used },
        settlement.id,
      );
      return;
    }
    const outcome = typeof result === 'string' || result instanceof StorageError ? undefined : result[0];
    const isSettled = outcome?.hold === 'settled';
    if (cause !== 'request') {
      if (isSettled && cause === 'reset') counts.released(domain, rule, settlement.amount);
    } else if (!isSettled) {
      counts.unsettled(domain, 'unknown');
      record(records, { event: 'unknown', rule }, settlement.id);
    } else {
      const { uncollectedHits, heldHits = 0 } = outcome;
      const hits = settlement.id === undefined ? heldHits : settlement.amount;
      counts.settled(domain, rule, hits, used);
      if (uncollectedHits > 0) observer.counts.uncollected(domain, rule, uncollectedHits);
      record(records, { event: 'settled', rule, hits, used }, settlement.id);
    }
  }

  #releaseInTurn(request: PlacedRequest): void {
    if (this.#releases.size === 0 && this.#releases.remaining > 0) this.#release(request, false);
    else this.#releases.wait(() => this.#release(request, true));
  }

  /**
   * Releases the holds of a request whose caller has reset the call. As for tokens, the rules are looked up in the
   * current policy. Expired holds are skipped, because a connection with little traffic remembers its calls for longer
   * than the MACs of their tokens are valid.
   */
  #release(request: PlacedRequest, isDeferred: boolean): void {
    const { domain, connection, placedMicros } = request;
    const holds = this.#placed.forget(request);
    this.#releases.spend(holds.length);
    const policy = this.#options.policies.current()?.domains.get(domain);
    if (policy === undefined) return;
    const ageMicros = this.#options.clock.monotonicMicros() - placedMicros;
    for (const hold of holds) {
      const held = hold.lifetimeMillis * 1000 > ageMicros ? heldRuleOf(policy, hold) : undefined;
      if (held === undefined) continue;
      const settlement = new HoldSettlement(hold, {
        domain,
        held,
        cause: 'reset',
        source: AUTHENTIC,
        connection,
        used: 0,
      });
      void (isDeferred ? this.#late.defer(settlement) : this.#late.add(settlement));
    }
  }

  #send(settlement: HoldSettlement): TakeResult | Promise<TakeResult> {
    const { store, clock, storeTimeoutMicros } = this.#options;
    if (settlement.isLocal) return this.#sendLocally(settlement);
    const result = askStore(store, [settlement.item()], clock.monotonicMicros() + storeTimeoutMicros);
    if (settlement.id !== undefined) return result;
    return result instanceof Promise
      ? result.then((late) => this.#orLocally(settlement, late))
      : this.#orLocally(settlement, result);
  }

  /** If the store is unavailable and local buckets replace it, settles the oldest local hold instead. */
  #orLocally(settlement: HoldSettlement, result: TakeResult): TakeResult | Promise<TakeResult> {
    if (!(result instanceof StorageError) || !result.unsent) return result;
    if (answerOf(settlement.held.rule.onStoreFailure) !== 'local') return result;
    const local = this.#sendLocally(settlement);
    return Array.isArray(local) && local[0]?.hold === 'settled' ? local : result;
  }

  #sendLocally(settlement: HoldSettlement): TakeResult | Promise<TakeResult> {
    const { onStoreFailure } = settlement.held.rule;
    return askStore(this.#options.local, [{ ...settlement.item(), onStoreFailure }], Infinity);
  }
}

/**
 * Records the result of settling a hold of a token. Only ids that are digests are recorded, because the id of a hold of
 * the first edition is part of its token.
 */
function record(records: HoldRecord[] | undefined, end: HoldRecord, id?: HoldId): void {
  if (records === undefined || records.length >= MAX_RECORDED_HOLDS) return;
  records.push(id !== undefined && hasBoundId({ id }) ? { ...end, id } : end);
}

/**
 * Returns a promise that resolves when all of these promises have resolved; undefined if there are none. Most requests
 * have one.
 */
function allOf(running: readonly Promise<void>[]): Promise<unknown> | undefined {
  return running.length > 1 ? Promise.all(running) : running[0];
}

/** Returns the hold of an item, as the token contains it; undefined if the item places no hold. */
function tokenHold(
  { key, hashTagLength, hits, holds, rule, outcome: ownOutcome }: MatchedTake,
  isLocal: boolean,
  outcome = ownOutcome,
): PlacedHold | undefined {
  if (holds === undefined || rule === undefined) return undefined;
  const { id, lifetimeMillis, freesUnknown = false, terms } = holds;
  const { fullAtMicros = 0, refillMicros = 0 } = outcome ?? {};
  return {
    key,
    hashTagLength,
    suffix: rule.bucketSuffix,
    id,
    lifetimeMillis,
    amount: hits,
    fullAtMicros,
    refillMicros,
    rule: rule.digest,
    terms,
    isLocal,
    freesUnknown,
  };
}
