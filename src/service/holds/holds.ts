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
import type { PolicySet } from '../../policy/compiled-policy.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { Rule } from '../../policy/rule.js';
import { append } from '../../runtime/append.js';
import { TurnScheduler, turn } from '../../runtime/turns.js';
import type { AnswerOptions } from '../answer/answer-options.js';
import type { DecisionCounts, HoldCounts } from '../decision-observer.js';
import { applyReplacesAndQuotas } from '../enforcement/quotas-and-replaces.js';
import type { PlannedTake, RequestContext } from '../plan.js';
import { type HoldRecord, MAX_RECORDED_HOLDS } from '../record/decision-record.js';
import { askStore } from '../store-failure.js';
import { heldRule, heldRuleOf } from './held-rules.js';
import { type EndProperties, HoldEnd, NOT_OWN, OWN, oldestHold } from './hold-end.js';
import type { HoldMarks } from './hold-marks.js';
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
import { type EndResult, LateEnds } from './late-ends.js';
import { PlacedHolds, type PlacedRequest } from './placed-holds.js';
import type { Settlements } from './settlements.js';

/** Maximum work of the settlements that one request sends at once. A single one may be more work. */
export const MAX_WORK_AT_ONCE = 128;

/** Maximum number of holds that resets of calls release in one turn of the event loop. One call may have more. */
const RELEASES_PER_TURN = 128;

/** The use that a request reports with a token, and the results of the token. */
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
  readonly observer: { readonly counts: Pick<DecisionCounts, 'forgiven'> };
  readonly answers: Pick<AnswerOptions, 'holdNames'>;
  readonly marks: HoldMarks;
  /** Returns the policies in effect. */
  readonly policies: () => PolicySet | undefined;
  /** Maximum time for a store call, in microseconds. */
  readonly storeTimeoutMicros: number;
}

/**
 * The holds of requests from their placement to their end. A request that placed holds gets a token for all of them in
 * the dynamic metadata of its answer. Envoy returns the token as an entry when the request ends, and any replica then
 * settles the holds.
 */
export class Holds {
  readonly #options: HoldsOptions;
  readonly #late: LateEnds;
  readonly #placed = new PlacedHolds((request) => this.#releaseInTurn(request));
  /** A connection that ends resets all of its calls. Their holds must not delay other callers. */
  readonly #releases = new TurnScheduler<() => void>({
    budget: RELEASES_PER_TURN,
    serve: (release) => release(),
  });

  constructor(options: HoldsOptions) {
    this.#options = options;
    this.#late = new LateEnds(
      options.clock,
      (end) => this.#send(end),
      (end, result) => this.#report(end, result),
      (end) => (end.isLocal ? undefined : options.store.serverOf?.(end.item())),
    );
  }

  /**
   * Settles the holds of the tokens in a request, also if the request is refused later. Descriptors with the same token
   * are one settlement, and the hits of the first one that has its own are the use. A settlement that failed is tried
   * again until its hold expires. The request does not wait for settlements after the first {@link MAX_WORK_AT_ONCE}.
   * If the use of a request above a bound was not read, the hits stay taken, also with `unknown: free`: otherwise, a
   * caller with long headers would get them back. Returns undefined if the request has no token.
   */
  settle(
    { descriptors, exceeded }: RateLimitRequest,
    policy: DomainPolicy,
    connection: unknown,
  ): Settlements | undefined {
    const ends: HoldRecord[][] = [];
    const uses: TokenUse[] = [];
    // Most requests end one hold. A map would hash its token, which is long.
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
      const source = new TokenSource(token, holds, this.#options.marks);
      for (const hold of holds) {
        const kept = exceeded === undefined ? undefined : hold?.amount;
        const use = { source, connection, used: used ?? kept, records };
        work += this.#settleHold(policy, hold, use, running, work >= MAX_WORK_AT_ONCE);
      }
    }
    return { ends, done: allOf(running) };
  }

  /**
   * Ends the requests of rules with `pair: oldest` that a call reports, as much work at once as for tokens. An end that
   * failed is tried again only if the store has certainly not executed it. Returns undefined if nothing is awaited.
   */
  settleOldest({ decisions, policy, caller }: RequestContext): Promise<unknown> | undefined {
    const { domain } = policy;
    const { connection } = caller;
    const running: Promise<void>[] = [];
    let work = 0;
    for (const decision of decisions) {
      if (decision.oldestEnds.length === 0) continue;
      const records: HoldRecord[] = [];
      // Any caller can send such an end.
      const common = { domain, cause: 'request', source: NOT_OWN, connection, records } as const;
      decision.ends = records;
      for (const take of decision.oldestEnds) {
        const held = heldRule(take.rule as Rule);
        const end = new HoldEnd(oldestHold(take), { ...common, held, used: take.hits });
        this.#end(end, work >= MAX_WORK_AT_ONCE, running);
        work += end.work;
      }
    }
    return allOf(running);
  }

  /** Returns whether the holds of a request fit into a token that a replica accepts when it comes back. */
  fitIntoToken(takes: readonly PlannedTake[]): boolean {
    if (takes.length <= HOLDS_THAT_FIT) return true;
    const placed = takes.flatMap(({ key, rule, holds }) =>
      holds !== undefined && rule?.hold?.pair === 'token' ? [{ key, terms: holds.terms }] : [],
    );
    return maxTokenLength(placed) <= MAX_TOKEN_CHARACTERS;
  }

  /** Settles the ends of requests that a call reports, as far as it is planned, if no limits decide the call. */
  settlePlanned(context: RequestContext): void {
    if (!context.policy.hasHolds) return;
    applyReplacesAndQuotas(context);
    void this.settleOldest(context);
  }

  /**
   * Adds the token of a decided request to its context, and lets its caller release the holds. Ends the holds that the
   * store has abandoned. `isLocal`: the local buckets decided it.
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
    if (named.length > 0) context.token = encodeToken(named, this.#options.marks);
    // A quiet connection keeps its listeners for a long time. The policy and its rows of plans, which reloads replace,
    // must not stay in memory with them.
    const { policy, caller } = context;
    const placedMicros = this.#options.clock.monotonicMicros();
    caller.resetListener = this.#placed.add(policy.domain, caller.connection, placedMicros, holds);
  }

  /**
   * Ends the holds of a request that got no answer from the store, because the store may have placed them. The caller
   * gets no token.
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
   * Ends a hold whose token reaches no caller, as soon as the store answers. Without an answer, the hold of a token
   * bucket expires, because only the store knows all of its values.
   */
  #endAbandoned(
    { policy, caller }: RequestContext,
    take: PlannedTake,
    outcome: PlannedTake['outcome'] | undefined,
  ): void {
    if (take.rate.kind === 'token_bucket' && outcome?.fullMicros === undefined) return;
    const hold = tokenHold(take, false, outcome);
    const held = hold && heldRuleOf(policy, hold);
    if (hold === undefined || held === undefined) return;
    const isPlaced = outcome?.fullMicros !== undefined;
    const cause = isPlaced ? 'abandoned' : 'unanswered';
    const source = isPlaced ? OWN : NOT_OWN;
    const { domain } = policy;
    const { connection } = caller;
    void this.#late.add(new HoldEnd(hold, { domain, held, cause, source, connection, used: 0 }));
  }

  /** Waits for releases, and for ends that no request waits for, see {@link LateEnds.drain}. */
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

  /** Settles a hold of a token; undefined for a malformed one. Returns its work. */
  #settleHold(
    policy: DomainPolicy,
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
    const end = new HoldEnd(hold, { domain, held, cause: 'request', ...use });
    this.#end(end, isDeferred, running);
    return end.work;
  }

  /** Ends a hold at once, or later if its request has sent enough settlements. */
  #end(end: HoldEnd, isDeferred: boolean, running: Promise<void>[]): void {
    const sent = isDeferred ? this.#late.defer(end) : this.#late.add(end);
    if (sent !== undefined) running.push(sent);
  }

  /**
   * Counts the result of an end, and records the first one for its request. A hold counts as settled only if the store
   * says so. If the store has executed an earlier attempt without an answer, it no longer knows the hold.
   */
  #report(end: HoldEnd, result: EndResult): void {
    const { counts, observer } = this.#options;
    const { domain, cause, used, records } = end;
    const { path: rule } = end.held.rule;
    // The request does not wait for later results.
    end.records = undefined;
    if (result === 'waiting' || result === 'lost') {
      // An invented token has no hold to lose, and neither may a start without an answer.
      const isLoss = end.id === undefined || end.source.isOwn();
      if (result === 'lost' && isLoss) counts.lost(domain, rule);
      else if (result === 'lost' && cause === 'request') counts.unsettled(domain, 'unverified');
      record(records, { event: result, rule, ...(end.id && { hits: end.amount }), used }, end.id);
      return;
    }
    const outcome = Array.isArray(result) ? result[0] : undefined;
    const isSettled = outcome?.hold === 'settled';
    if (cause !== 'request') {
      if (isSettled && cause === 'reset') counts.released(domain, rule, end.amount);
    } else if (!isSettled) {
      counts.unsettled(domain, 'unknown');
      record(records, { event: 'unknown', rule }, end.id);
    } else {
      const { forgiven, heldHits = 0 } = outcome;
      const hits = end.id === undefined ? heldHits : end.amount;
      counts.settled(domain, rule, hits, used);
      if (forgiven > 0) observer.counts.forgiven(domain, rule, forgiven);
      record(records, { event: 'settled', rule, hits, used }, end.id);
    }
  }

  #releaseInTurn(request: PlacedRequest): void {
    if (this.#releases.size === 0 && this.#releases.remaining > 0) this.#release(request, false);
    else this.#releases.wait(() => this.#release(request, true));
  }

  /**
   * Gives back the holds of a request whose caller is gone. The current policy has their rules, as for tokens. A hold
   * that has expired needs no end: a quiet connection remembers its calls for longer than the marks of their tokens are
   * valid.
   */
  #release(request: PlacedRequest, isDeferred: boolean): void {
    const { domain, connection, placedMicros } = request;
    const holds = this.#placed.forget(request);
    this.#releases.spend(holds.length);
    const policy = this.#options.policies()?.domains.get(domain);
    if (policy === undefined) return;
    const ageMicros = this.#options.clock.monotonicMicros() - placedMicros;
    for (const hold of holds) {
      const held = hold.lifetimeMillis * 1000 > ageMicros ? heldRuleOf(policy, hold) : undefined;
      if (held === undefined) continue;
      const end = new HoldEnd(hold, { domain, held, cause: 'reset', source: OWN, connection, used: 0 });
      void (isDeferred ? this.#late.defer(end) : this.#late.add(end));
    }
  }

  #send(end: HoldEnd): TakeResult | Promise<TakeResult> {
    const { store, clock, storeTimeoutMicros } = this.#options;
    if (end.isLocal) return this.#sendLocally(end);
    const result = askStore(store, [end.item()], clock.monotonicMicros() + storeTimeoutMicros);
    if (end.id !== undefined) return result;
    return result instanceof Promise
      ? result.then((late) => this.#orLocally(end, late))
      : this.#orLocally(end, result);
  }

  /** Settles the oldest local hold instead, if the store is unavailable and local buckets replace it. */
  #orLocally(end: HoldEnd, result: TakeResult): TakeResult | Promise<TakeResult> {
    if (!(result instanceof StorageError) || !result.unsent) return result;
    if (answerOf(end.held.rule.onStoreFailure) !== 'local') return result;
    const local = this.#sendLocally(end);
    return Array.isArray(local) && local[0]?.hold === 'settled' ? local : result;
  }

  #sendLocally(end: HoldEnd): TakeResult | Promise<TakeResult> {
    const { onStoreFailure } = end.held.rule;
    return askStore(this.#options.local, [{ ...end.item(), onStoreFailure }], Infinity);
  }
}

/**
 * Records the result of a token for a hold. The id of a hold of the first edition is part of its token, so only an id
 * that is a digest is recorded.
 */
function record(records: HoldRecord[] | undefined, end: HoldRecord, id?: HoldId): void {
  if (records === undefined || records.length >= MAX_RECORDED_HOLDS) return;
  records.push(id !== undefined && hasBoundId({ id }) ? { ...end, id } : end);
}

/** Resolves when all promises have resolved. Undefined without promises; most requests have one. */
function allOf(running: readonly Promise<void>[]): Promise<unknown> | undefined {
  return running.length > 1 ? Promise.all(running) : running[0];
}

/** Returns the hold of a take for the token; undefined if the take does not hold. */
function tokenHold(
  { key, tagLength, hits, holds, rule, outcome: ownOutcome }: PlannedTake,
  isLocal: boolean,
  outcome = ownOutcome,
): PlacedHold | undefined {
  if (holds === undefined || rule === undefined) return undefined;
  const { id, lifetimeMillis, freesUnknown = false, terms } = holds;
  const { fullMicros = 0, costMicros = 0 } = outcome ?? {};
  return {
    key,
    tagLength,
    suffix: rule.bucketSuffix,
    id,
    lifetimeMillis,
    amount: hits,
    fullMicros,
    costMicros,
    rule: rule.digest,
    terms,
    isLocal,
    freesUnknown,
  };
}
