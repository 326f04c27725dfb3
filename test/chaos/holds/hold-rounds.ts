import type { Random } from '../../fuzz/random.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { waitFor } from '../../support/process/wait-for.js';
import type { Answer } from '../calls/answer.js';
import { type Bucket, DOMAIN } from '../calls/buckets.js';
import { encodeCall, type Reply } from '../calls/paced-client.js';
import { BUDGET, type HeldRequest, HOLD_BUCKETS, HoldRound, SLOTS } from './hold-round.js';

/** Requests last up to this time, which is shorter than the lifetime of their holds. */
const MAX_REQUEST_MS = 650;
/** Maximum use of a request. It may be larger than the estimate. */
const MAX_USED = 75;
/** One of this number of requests never ends, as if its Envoy was killed. */
const LOST_ENDS = 5;
/** One of this number of ends is sent again. */
const REPEATED_ENDS = 8;
const REPEATED_WITHIN_MS = 100;
const LOOK_MS = 1000;
const KINDS = [[SLOTS], [SLOTS, BUDGET], [BUDGET, SLOTS], [BUDGET]] as const;

/** A call that the rounds want to send. */
export interface HoldCall {
  readonly message: Buffer;
  readonly requested: readonly Bucket[];
  readonly isEnd: boolean;
  readonly answered: (reply: Reply, answer: Answer) => void;
}

/**
 * Starts and ends requests that hold slots and reservations. From time to time, a new round with new buckets begins,
 * and all holds of the previous round must end or expire. Close it after use.
 */
export class HoldRounds {
  private readonly random: Random;
  private readonly isSharded: boolean;
  private readonly fail: (message: string) => void;
  private readonly looks: RlsClient;
  private readonly past: HoldRound[] = [];
  private current = new HoldRound('0', undefined);
  private rounds = 1;
  private readonly due: HeldRequest[] = [];
  /** Requests whose end was sent already. */
  private readonly repeated = new WeakSet<HeldRequest>();
  /** Rounds since {@link startWindow}. */
  private window: HoldRound[] = [];
  /** Numbers of allowed and denied starts, of ends, and of finished rounds whose balance was known exactly. */
  readonly counts = { allowed: 0, denied: 0, undecided: 0, ends: 0, exact: 0 };

  /** `isSharded`: several Redis nodes serve the buckets. */
  constructor(weirPort: number, isSharded: boolean, random: Random, fail: (message: string) => void) {
    this.looks = new RlsClient(weirPort);
    this.isSharded = isSharded;
    this.random = random;
    this.fail = fail;
  }

  /** Returns the next call: the end of a request that is over, or a start. */
  next(nowMs: number): HoldCall {
    const at = this.due.findIndex(({ dueMs }) => dueMs <= nowMs);
    const [ended] = at < 0 ? [] : this.due.splice(at, 1);
    return ended === undefined ? this.start() : this.end(ended, nowMs);
  }

  /** Begins a fault. */
  startWindow(fault: string): void {
    this.current.fault = fault;
    this.window = [this.current];
  }

  /** Begins a new round: requests that start now use other buckets. */
  startRound(): void {
    this.past.push(this.current);
    this.current = new HoldRound(String(this.rounds++), this.current.fault);
    this.window.push(this.current);
  }

  /** Declares that Redis may lose holds from now until the next round begins. */
  markPossiblyLost(names: ReadonlySet<string>): void {
    if (!HOLD_BUCKETS.some(({ name }) => names.has(name))) return;
    this.current.mayExceed = true;
    for (const round of [...this.past, this.current]) round.mayLoseHits = true;
  }

  /** Declares that the clock of Redis is set from now until the next round begins. */
  markClockSteps(): void {
    for (const round of [...this.past, this.current]) round.hasClockSteps = true;
  }

  /** Maximum number of requests that were in flight in addition to the limit since {@link startWindow}. */
  get excess(): number {
    return Math.max(0, ...this.window.map(({ excess }) => excess));
  }

  /** Checks the past rounds whose holds must have expired. */
  async checkExpired(): Promise<void> {
    const isOver = ({ waiting, freeByMs }: HoldRound) => waiting === 0 && freeByMs < performance.now();
    for (const round of this.past.filter(isOver)) await this.check(round);
  }

  /** Ends the last round, and checks all rounds. All calls must have been answered. */
  async checkAll(): Promise<void> {
    this.startRound();
    for (const round of [...this.past]) await this.check(round);
    const { allowed, denied, ends } = this.counts;
    if (allowed === 0 || denied === 0 || ends === 0)
      this.fail('no request had to wait for the end of another');
  }

  /** Returns the counts as text. */
  summary(): string {
    const { allowed, denied, undecided, ends, exact } = this.counts;
    return (
      `${allowed} starts allowed, ${denied} denied and ${undecided} without a decision, ${ends} ends, ` +
      `${exact} exact balances in ${this.rounds - 1} rounds`
    );
  }

  close(): void {
    this.looks.close();
  }

  private start(): HoldCall {
    const { current: round, random } = this;
    const requested = random.pick(KINDS);
    const message = encodeCall(
      requested.map((bucket) => entriesOf(bucket, round)).map((texts) => descriptor(texts)),
    );
    round.waiting++;
    return {
      message,
      requested,
      isEnd: false,
      answered: (reply, answer) => {
        round.waiting--;
        round.answered(requested, reply, answer, this.isSharded);
        this.count(answer);
        const token = reply.response?.dynamicMetadata?.['hold'];
        if ((answer.kind === 'allowed') !== (typeof token === 'string'))
          this.fail(`an answer of the kind "${answer.kind}" has the hold token ${String(token)}`);
        if (answer.kind !== 'allowed' || typeof token !== 'string') return;
        const { sentMs, endMs } = reply;
        const dueMs = sentMs + random.below(MAX_REQUEST_MS);
        const held = { round, token, requested, sentMs, dueMs, used: random.below(MAX_USED) };
        round.started(held, endMs);
        if (!random.oneIn(LOST_ENDS)) this.due.push(held);
      },
    };
  }

  /** As Envoy does, an end reports the use, and the end itself in any case. */
  private end(held: HeldRequest, nowMs: number): HoldCall {
    const { round, token, used } = held;
    const message = encodeCall([
      descriptor([`hold=${token}`], { hitsAddend: used }),
      descriptor([`hold=${token}`, 'done=1']),
    ]);
    round.waiting++;
    // Only the first end of a request has an effect.
    const noteEnd = this.repeated.has(held) ? undefined : round.ending(held, nowMs);
    if (this.random.oneIn(REPEATED_ENDS)) {
      const again = { ...held, dueMs: nowMs + this.random.below(REPEATED_WITHIN_MS) };
      this.repeated.add(again);
      this.due.push(again);
    }
    return {
      message,
      requested: HOLD_BUCKETS,
      isEnd: true,
      answered: (reply, answer) => {
        round.waiting--;
        this.counts.ends++;
        noteEnd?.(reply);
        // An answer to an end contains no limits, as if there were no decision.
        if (answer.kind !== 'by-policy' || reply.response?.dynamicMetadata !== undefined)
          this.fail(
            `the end of a request got an answer of the kind "${answer.kind}": ${JSON.stringify(reply)}`,
          );
      },
    };
  }

  private count({ kind }: Answer): void {
    if (kind === 'allowed' || kind === 'denied') this.counts[kind]++;
    else {
      this.counts.undecided++;
      // Past rounds still send settlements, which may not reach Redis either.
      for (const round of [...this.past, this.current]) round.hasUndecided = true;
    }
  }

  private async check(round: HoldRound): Promise<void> {
    this.past.splice(this.past.indexOf(round), 1);
    const [freeSlots, leftHits] = await this.leftAfter(round);
    for (const problem of round.problems(freeSlots, leftHits)) this.fail(problem);
    if (round.isExact) this.counts.exact++;
  }

  /** Waits until all slots of a round are free, or must be free. Resolves with the free slots and the left hits. */
  private leftAfter(round: HoldRound): Promise<readonly [freeSlots: number, leftHits: number]> {
    return waitFor('the buckets of a round', async () => {
      const { response, sentAt } = await this.looks.ask(
        DOMAIN,
        HOLD_BUCKETS.map((bucket) => descriptor(entriesOf(bucket, round), { hitsAddend: 0 })),
        { timeoutMs: LOOK_MS },
      );
      const [slots, budget] = response?.statuses ?? [];
      if (slots?.currentLimit === undefined || budget?.currentLimit === undefined) return undefined;
      if (slots.limitRemaining < SLOTS.maxTokens && sentAt < round.freeByMs) return undefined;
      return [slots.limitRemaining, budget.limitRemaining] as const;
    });
  }
}

function entriesOf({ name }: Bucket, round: HoldRound): readonly string[] {
  return [`bucket=${name}`, `round=${round.name}`];
}
