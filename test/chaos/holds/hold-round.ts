import type { Answer } from '../calls/answer.js';
import type { Bucket } from '../calls/buckets.js';
import type { Reply } from '../calls/paced-client.js';

/** Lifetime of the holds. */
const LIFETIME_MS = 1000;
/** Maximum time for which a hold may exist after it has expired. */
const MAX_LATE_MS = 1000;
/**
 * A settlement certainly had its effect if its answer arrived within this time, so that it did not time out, and this
 * time before its hold expired, so that weir could repeat it.
 */
const PROMPT_MS = 100;
const REPEAT_MS = 250;
/** Hits that each reservation takes at its start. */
const ESTIMATE = 50;

const holdBucket = (name: string, maxTokens: number): Bucket => ({
  ...{ name, maxTokens, perMs: 0, onFailure: 'error', isLarge: false },
});
/** A limit on concurrent requests. */
export const SLOTS = holdBucket('slots', 5);
/** A token bucket with reservations. It does not refill during a test. */
export const BUDGET = holdBucket('budget', 1500);
export const HOLD_BUCKETS = [SLOTS, BUDGET];

/** Rules for the policy. Each round has its own slots and its own budget, on the same Redis node as in other rounds. */
export const HOLD_RULES = `  - key: bucket
    value: ${SLOTS.name}
    descriptors:
      - key: round
        rate_limit:
          name: ${SLOTS.name}
          concurrency: { max: ${SLOTS.maxTokens}, expires_after: ${LIFETIME_MS}ms }
  - key: bucket
    value: ${BUDGET.name}
    descriptors:
      - key: round
        rate_limit:
          name: ${BUDGET.name}
          token_bucket: { max_tokens: ${BUDGET.maxTokens}, tokens_per_fill: 1, fill_interval: 10h }
          hold: { amount: ${ESTIMATE}, expires_after: ${LIFETIME_MS}ms }
`;

/** A request that was allowed to start. Times are in milliseconds of the test's clock. */
export interface HeldRequest {
  readonly round: HoldRound;
  readonly token: string;
  readonly requested: readonly Bucket[];
  readonly sentMs: number;
  /** Time at which the request ends, and its use. */
  readonly dueMs: number;
  readonly used: number;
}

/** A settlement of a reservation. */
interface Settlement {
  /** Use above the estimate; negative if the use is below. */
  readonly difference: number;
  /** Whether it certainly had its effect, if weir reached Redis. */
  isCertain: boolean;
}

/** The holds of a bucket until they end or expire. All times have the same unit. */
class InFlight {
  private readonly expiries = new Map<string, number>();
  /** Maximum number of holds so far. */
  most = 0;

  place(id: string, expiresAt: number, now: number): void {
    this.expire(now);
    this.expiries.set(id, expiresAt);
    this.most = Math.max(this.most, this.expiries.size);
  }

  end(id: string, now: number): void {
    this.expire(now);
    this.expiries.delete(id);
  }

  /** Returns the number of holds that have not expired. */
  countAt(now: number): number {
    this.expire(now);
    return this.expiries.size;
  }

  private expire(now: number): void {
    for (const [id, expiresAt] of this.expiries) if (expiresAt <= now) this.expiries.delete(id);
  }
}

/**
 * The ledger of the requests that start with the same slots and the same budget. It knows only the answers, so it
 * counts a request as in flight from the answer to its start until its end is sent. Redis holds a slot for longer.
 */
export class HoldRound {
  /** Value of the descriptor entry. */
  readonly name: string;
  /** The fault during the round; undefined before the first fault. */
  fault: string | undefined;
  /** Whether Redis may have lost holds while requests started. */
  mayExceed = false;
  /** Whether Redis may have lost holds or hits since the beginning of the round. */
  mayLoseHits = false;
  /** Whether the clock of Redis was set while holds existed. Holds then expire at another time. */
  hasClockSteps = false;
  /** Whether a start of this or a later round got no decision. Settlements may then come too late. */
  hasUndecided = false;
  /** Number of calls without an answer. */
  waiting = 0;
  private readonly inFlight = new InFlight();
  /** The requests that may still hold slots. */
  private readonly possible = new InFlight();
  /** Number of starts that were denied although a slot must have been free. */
  private wrongDenials = 0;
  /** Number of denied starts that several nodes decided. */
  private denied = 0;
  private readonly settlements: Settlement[] = [];
  /** Hits that the starts took at least and at most. */
  private taken = { least: 0, most: 0 };
  /** Maximum of the hits that were certainly taken when a start was allowed. */
  private mostTaken = 0;
  private lastMs = performance.now();

  constructor(name: string, fault: string | undefined) {
    this.name = name;
    this.fault = fault;
  }

  /** Records the answer to a start. `isSharded`: several nodes may take part in the request. */
  answered(requested: readonly Bucket[], { sentMs, endMs }: Reply, answer: Answer, isSharded: boolean): void {
    this.lastMs = Math.max(this.lastMs, endMs);
    const hits = requested.includes(BUDGET) ? ESTIMATE : 0;
    if (answer.kind === 'allowed') {
      this.taken.least += hits;
      this.taken.most += hits;
      if (hits > 0) this.mostTaken = Math.max(this.mostTaken, this.takenNow(false).least);
    } else if (answer.kind !== 'denied') {
      this.hasUndecided = true;
      this.taken.most += hits;
    } else {
      if (isSharded && requested.length > 1) {
        this.taken.most += hits;
        // The answer does not wait until the slot is free again that another node gave to the denied request.
        this.possible.place(`denied ${this.denied++}`, endMs + PROMPT_MS, 0);
      }
      // During a fault, weir answers a settlement before it reaches Redis.
      const isUndisturbed = this.fault === undefined && !this.hasUndecided;
      const isWrong = this.possible.countAt(sentMs) + this.waiting < SLOTS.maxTokens;
      if (isUndisturbed && isWrong && answer.empty.includes(SLOTS)) this.wrongDenials++;
    }
  }

  /** Records a request that was allowed to start, and was not in flight before `nowMs`. */
  started({ token, requested, sentMs }: HeldRequest, nowMs: number): void {
    const expiresMs = sentMs + LIFETIME_MS;
    if (!requested.includes(SLOTS)) return;
    this.possible.place(token, nowMs + LIFETIME_MS + MAX_LATE_MS, 0);
    if (expiresMs > nowMs) this.inFlight.place(token, expiresMs, nowMs);
  }

  /** Records that the end of a request is sent. The returned function records its answer. */
  ending({ token, requested, sentMs, used }: HeldRequest, nowMs: number): (reply: Reply) => void {
    this.inFlight.end(token, nowMs);
    const settlement = { difference: used - ESTIMATE, isCertain: false };
    if (requested.includes(BUDGET)) this.settlements.push(settlement);
    return ({ status, sentMs: settledMs, endMs }) => {
      const isInTime = endMs - settledMs < PROMPT_MS && endMs + REPEAT_MS < sentMs + LIFETIME_MS;
      settlement.isCertain = status === 0 && isInTime;
      if (settlement.isCertain) this.possible.place(token, endMs, 0);
    };
  }

  /** Number of requests that were in flight in addition to the limit. */
  get excess(): number {
    return Math.max(0, this.inFlight.most - SLOTS.maxTokens);
  }

  /** Time from which all slots must be free, if no further request starts. */
  get freeByMs(): number {
    return this.lastMs + LIFETIME_MS + MAX_LATE_MS;
  }

  /** Whether the answers determine the hits that remain in the budget. */
  get isExact(): boolean {
    return (
      !this.hasUndecided &&
      !this.mayLoseHits &&
      this.taken.least === this.taken.most &&
      this.settlements.every(({ isCertain }) => isCertain)
    );
  }

  /** Returns what was wrong, after the round. Parameters: the free slots and the remaining hits of the budget. */
  problems(freeSlots: number, leftHits: number): string[] {
    const found: string[] = [];
    const { mayExceed, mayLoseHits, hasClockSteps, excess } = this;
    // If Redis loses the holds of all requests in flight, as many requests can start in addition.
    if (excess > (mayExceed ? SLOTS.maxTokens : 0))
      found.push(`${this.inFlight.most} requests were in flight with ${SLOTS.maxTokens} slots`);
    if (this.wrongDenials > 0) found.push(`${this.wrongDenials} starts were denied although a slot was free`);
    if (!hasClockSteps && freeSlots !== SLOTS.maxTokens)
      found.push(`${freeSlots} of ${SLOTS.maxTokens} slots were free when all holds had expired`);
    const { maxTokens } = BUDGET;
    if (!mayExceed && this.mostTaken > maxTokens)
      found.push(`the budget of ${maxTokens} hits allowed ${this.mostTaken} hits`);
    const range = this.takenNow(!this.hasUndecided && !mayLoseHits);
    // A bucket in debt has no remaining hits.
    const least = mayLoseHits ? 0 : Math.min(maxTokens, range.least);
    const most = hasClockSteps ? maxTokens : range.most;
    const taken = maxTokens - leftHits;
    if (taken < least || taken > most)
      found.push(`the budget lacks ${taken} hits instead of ${least} to ${most}`);
    return found.map((problem) => `holds, ${this.fault ?? 'before all faults'}: ${problem}`);
  }

  /**
   * Returns how many hits the requests took at least and at most. `isTrusted`: weir reached Redis, and Redis lost
   * nothing.
   */
  private takenNow(isTrusted: boolean): { readonly least: number; readonly most: number } {
    let { least, most } = this.taken;
    for (const { difference, isCertain } of this.settlements) {
      const isKnown = isTrusted && isCertain;
      least += isKnown ? difference : Math.min(0, difference);
      most += isKnown ? difference : Math.max(0, difference);
    }
    return { least, most };
  }
}
