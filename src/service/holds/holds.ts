import type { Descriptor } from '../../codec/messages.js';
import {
  type BucketStore,
  type LocalStore,
  StorageError,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { HoldCounts } from '../decision-observer.js';
import type { Decision, PlannedTake, RequestContext } from '../plan.js';
import { type HoldRecord, MAX_RECORDED_HOLDS } from '../record/decision-record.js';
import { digestOf, heldRuleOf } from './held-rules.js';
import { decodeToken, encodeToken, type TokenHold } from './hold-token.js';
import { LateEnds } from './late-ends.js';
import { type HoldEnd, holdEnd } from './settle.js';

/** The use that a request reports with a token, and the first descriptor with the token. */
interface TokenUse {
  readonly used: number | undefined;
  readonly decision: Decision;
}

/** Dependencies of {@link Holds}. */
export interface HoldsOptions {
  readonly store: BucketStore;
  readonly local: LocalStore;
  readonly clock: Clock;
  readonly counts: HoldCounts;
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

  constructor(options: HoldsOptions) {
    this.#options = options;
    this.#late = new LateEnds(options.clock, (end) => this.#send(end));
  }

  /**
   * Settles the holds of the descriptors that contain a token. Descriptors with the same token are one settlement, and
   * the hits of the first one that has its own are the use. Resolves when the store has answered or failed. A
   * settlement that failed is tried again until its hold expires.
   */
  settle(context: RequestContext): Promise<void> | undefined {
    const { policy } = context;
    const running: Promise<void>[] = [];
    for (const [token, { used, decision }] of this.#usesOf(context)) {
      const holds = decodeToken(token);
      if (holds === undefined) {
        this.#options.counts.unsettled(policy.domain, 'malformed');
        record(decision, { event: 'malformed' });
        continue;
      }
      for (const hold of holds) {
        const held = heldRuleOf(policy, hold);
        if (held !== undefined) this.#end(policy.domain, holdEnd(held, hold, used), decision, running);
        else {
          this.#options.counts.unsettled(policy.domain, 'unknown');
          record(decision, { event: 'unknown' });
        }
      }
    }
    return running.length === 0 ? undefined : Promise.all(running).then(() => {});
  }

  /**
   * Adds the token of a decided request to its context, and lets its caller release the holds. `isLocal`: the local
   * buckets decided it.
   */
  notePlaced(context: RequestContext, isLocal: boolean): void {
    const holds = context.takes.flatMap((take) =>
      take.outcome?.hold === 'placed' ? (tokenHold(take, isLocal) ?? []) : [],
    );
    if (holds.length === 0) return;
    context.token = encodeToken(holds);
    // The transport keeps the function for a while, so it refers to no more than it needs.
    const { policy, caller } = context;
    caller.onReset = () => this.#release(policy, holds);
  }

  /**
   * Ends the slots of a request that got no answer from the store, because the store may have placed them. The caller
   * gets no token. Reservations expire, because only the store knows all of their values.
   */
  abandon(context: RequestContext, error: StorageError): void {
    if (error.unsent) return;
    for (const take of context.takes) {
      if (take.rate.kind !== 'concurrency') continue;
      const hold = tokenHold(take, false);
      const held = hold && heldRuleOf(context.policy, hold);
      if (hold !== undefined && held !== undefined) this.#late.add(holdEnd(held, hold, 0));
    }
  }

  /** Returns the uses by token, in the order of the descriptors. */
  #usesOf({ decisions, request, options }: RequestContext): ReadonlyMap<string, TokenUse> {
    const uses = new Map<string, TokenUse>();
    for (let i = 0; i < decisions.length; i++) {
      const decision = decisions[i] as Decision;
      if (!decision.settles) continue;
      const { entries, hitsAddend } = request.descriptors[i] as Descriptor;
      const token = entries.find(({ key }) => key === options.answers.holdNames.entry)?.value ?? '';
      const known = uses.get(token);
      uses.set(token, { used: known?.used ?? hitsAddend, decision: known?.decision ?? decision });
    }
    return uses;
  }

  #end(domain: string, end: HoldEnd, decision: Decision, running: Promise<void>[]): void {
    const result = this.#send(end);
    const note = (known: TakeResult): void => {
      this.#note(domain, end, known);
      record(decision, endRecord(end, known));
    };
    if (result instanceof Promise) running.push(result.then(note));
    else note(result);
  }

  #note(domain: string, end: HoldEnd, result: TakeResult): void {
    const { counts } = this.#options;
    const { hold, held, used } = end;
    if (result instanceof StorageError) {
      this.#late.add(end, (later) => {
        if (later === undefined) counts.lost(domain, held.rule.path);
        else this.#note(domain, end, later);
      });
    } else if (result[0]?.hold === 'settled') counts.settled(domain, held.rule.path, hold.amount, used);
    else counts.unsettled(domain, 'unknown');
  }

  /** Gives back the holds of a request whose caller is gone. */
  #release(policy: DomainPolicy, holds: readonly TokenHold[]): void {
    const { counts } = this.#options;
    for (const hold of holds) {
      const held = heldRuleOf(policy, hold);
      if (held === undefined) continue;
      this.#late.add(holdEnd(held, hold, 0), (result) => {
        if (result === undefined) counts.lost(policy.domain, held.rule.path);
        else if (!(result instanceof StorageError) && result[0]?.hold === 'settled') {
          counts.released(policy.domain, held.rule.path, hold.amount);
        }
      });
    }
  }

  #send({ item, hold, held }: HoldEnd): TakeResult | Promise<TakeResult> {
    const { store, local, clock, storeTimeoutMicros } = this.#options;
    if (hold.isLocal) return local.take([{ ...item, onStoreFailure: held.rule.onStoreFailure }]);
    return store.take([item], clock.monotonicMicros() + storeTimeoutMicros);
  }
}

/** Records the result of a token for a hold. */
function record(decision: Decision, end: HoldRecord): void {
  if (decision.ends.length < MAX_RECORDED_HOLDS) decision.ends = [...decision.ends, end];
}

function endRecord({ hold, held, used }: HoldEnd, result: TakeResult): HoldRecord {
  const { path: rule } = held.rule;
  if (result instanceof StorageError) return { event: 'waiting', rule, hits: hold.amount, used };
  const isSettled = result[0]?.hold === 'settled';
  return isSettled ? { event: 'settled', rule, hits: hold.amount, used } : { event: 'unknown', rule };
}

/** Returns the hold of a take for the token; undefined if the take does not hold. */
function tokenHold(
  { key, tagLength, hits, holds, rule, outcome }: PlannedTake,
  isLocal: boolean,
): TokenHold | undefined {
  if (holds === undefined || rule === undefined) return undefined;
  const { id, lifetimeMillis } = holds;
  const fullMicros = outcome?.fullMicros ?? 0;
  const freesUnknown = rule.hold?.unknown === 'free';
  return {
    key,
    tagLength,
    id,
    lifetimeMillis,
    amount: hits,
    fullMicros,
    rule: digestOf(rule),
    isLocal,
    freesUnknown,
  };
}
