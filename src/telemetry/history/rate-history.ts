import type { FailureCounts } from './failure-counts.js';
import type { RateCounts } from './rate-counts.js';

/** Length of a step, seconds, and how many steps are kept: those of an hour. */
export const STEP_SECONDS = 5;
export const STEPS = 720;
const STEPS_OF_MINUTE = 60 / STEP_SECONDS;
/** A rule that was asked something within five minutes makes no room for another one. */
const LEAST_IDLE_STEPS = 300 / STEP_SECONDS;

/** Descriptors of a step, or of several. */
export interface StepCounts {
  readonly ok: number;
  readonly denied: number;
  readonly would: number;
}

/** What is counted of each rule. */
const COLUMNS: readonly (keyof StepCounts)[] = ['ok', 'denied', 'would'];

/** What is counted of all rules together. */
export interface AllCounts extends StepCounts, FailureCounts {}
const ALL_COLUMNS: readonly (keyof AllCounts)[] = [
  ...COLUMNS,
  'errors',
  'failure_allow',
  'failure_deny',
  'failure_local',
];

/** A rule with what became of its descriptors in the last minute, and in the last hour. */
export interface RuleCounts {
  readonly domain: string;
  readonly rule: string;
  readonly minute: StepCounts;
  readonly hour: StepCounts;
}

/** Counts of the last {@link STEPS} steps. Steps that nothing was counted in cost nothing. */
class Ring<Column extends string> {
  /** The step that was counted in last; what is older than an hour before it has been overwritten. */
  last: number;
  readonly #columns: readonly Column[];
  /** The columns one after the other: counts of a step lie at its number modulo STEPS. */
  readonly #counts: Float32Array;

  constructor(step: number, columns: readonly Column[]) {
    this.last = step;
    this.#columns = columns;
    this.#counts = new Float32Array(columns.length * STEPS);
  }

  add(step: number, added: Readonly<Partial<Record<Column, number>>>): void {
    this.#clearUpTo(step);
    for (let i = 0, at = step % STEPS; i < this.#columns.length; i++, at += STEPS) {
      const count = added[this.#columns[i] as Column] ?? 0;
      this.#counts[at] = (this.#counts[at] as number) + count;
    }
  }

  /** Of the `steps` steps up to `end`. */
  sum(end: number, steps: number): Record<Column, number> {
    return this.#byColumn((column) => {
      let sum = 0;
      for (let step = end - steps + 1; step <= end; step++) sum += this.#at(column, step);
      return sum;
    });
  }

  /** Of each of the `steps` steps before `end`. */
  rows(end: number, steps: number): Record<Column, number[]> {
    return this.#byColumn((column) =>
      Array.from({ length: steps }, (_, i) => this.#at(column, end - steps + i)),
    );
  }

  /** 0 where nothing is known of that step. */
  #at(column: number, step: number): number {
    const isKept = step >= 0 && step <= this.last && step > this.last - STEPS;
    return isKept ? (this.#counts[column * STEPS + (step % STEPS)] as number) : 0;
  }

  #byColumn<Each>(of: (column: number) => Each): Record<Column, Each> {
    const values = this.#columns.map((name, column) => [name, of(column)]);
    return Object.fromEntries(values) as Record<Column, Each>;
  }

  #clearUpTo(step: number): void {
    for (let next = Math.max(this.last + 1, step - STEPS + 1); next <= step; next++) {
      for (let at = next % STEPS; at < this.#counts.length; at += STEPS) this.#counts[at] = 0;
    }
    this.last = Math.max(this.last, step);
  }
}

/** Bytes that the counts of one rule take, and those of all rules together. */
export const RING_BYTES = COLUMNS.length * STEPS * Float32Array.BYTES_PER_ELEMENT;
export const ALL_RING_BYTES = ALL_COLUMNS.length * STEPS * Float32Array.BYTES_PER_ELEMENT;

/** Rules that {@link RateHistory.sums} looks at between two pauses. */
const STRETCH = 8;

/**
 * How many descriptors were let through and denied in the last hour, step by step: of all rules together, and of each
 * of `maxRules` rules at most, those that came first. A rule that is idle makes room for another one. Of all together
 * it keeps what the store could not decide, too.
 *
 * Whoever counts ends the steps, once what belongs to a step is counted: {@link RateHistory.end}.
 */
export class RateHistory {
  readonly #maxRules: number;
  readonly #all = new Ring(0, ALL_COLUMNS);
  readonly #byDomain = new Map<string, Map<string, Ring<keyof StepCounts>>>();
  #rules = 0;
  /** The step that is being counted in. */
  #step = 0;
  /** The step in which room was looked for last. */
  #lookedForRoom = -1;
  #crowdedAt = Number.NEGATIVE_INFINITY;

  constructor(maxRules: number) {
    this.#maxRules = maxRules;
  }

  /** Whether there were more rules within the last hour than it keeps. */
  get crowded(): boolean {
    return this.#step - this.#crowdedAt < STEPS;
  }

  add(counts: RateCounts): void {
    this.#all.add(this.#step, counts);
    this.#ringOf(counts.domain, counts.rule)?.add(this.#step, counts);
  }

  /** Adds what became of requests that were not decided, or without the store. */
  addFailures(counts: FailureCounts): void {
    this.#all.add(this.#step, counts);
  }

  /** Ends the step, and those after it in which there was nobody to count: `steps` in all. */
  end(steps = 1): void {
    this.#step += Math.max(1, steps);
  }

  /** The last step that is over, of all rules. */
  lastStep(): AllCounts {
    return this.#all.sum(this.#step - 1, 1);
  }

  /** Counts of each step that is over, the oldest first, of all rules. */
  allRows(): Record<keyof AllCounts, number[]> {
    return this.#all.rows(this.#step, Math.min(STEPS - 1, this.#step));
  }

  /** The same of one rule; undefined for one that is not kept. */
  rows({
    domain,
    rule,
  }: Pick<RateCounts, 'domain' | 'rule'>): Record<keyof StepCounts, number[]> | undefined {
    const ring = this.#byDomain.get(domain)?.get(rule);
    return ring?.rows(this.#step, Math.min(STEPS - 1, this.#step));
  }

  /** What was counted of each rule; '' is a pause. Rules that come meanwhile may be left out. */
  *sums(): Generator<RuleCounts | ''> {
    let seen = 0;
    for (const [domain, rules] of this.#byDomain) {
      for (const [rule, ring] of rules) {
        const end = this.#step - 1;
        const hour = ring.sum(end, STEPS - 1);
        if (hour.ok + hour.denied > 0) {
          yield { domain, rule, minute: ring.sum(end, STEPS_OF_MINUTE), hour };
        }
        if (++seen % STRETCH === 0) yield '';
      }
    }
  }

  #ringOf(domain: string, rule: string): Ring<keyof StepCounts> | undefined {
    const known = this.#byDomain.get(domain)?.get(rule);
    if (known !== undefined) return known;
    if (this.#rules >= this.#maxRules && !this.#makeRoom()) {
      this.#crowdedAt = this.#step;
      return undefined;
    }
    const ring = new Ring(this.#step, COLUMNS);
    const rules = this.#byDomain.get(domain);
    if (rules === undefined) this.#byDomain.set(domain, new Map([[rule, ring]]));
    else rules.set(rule, ring);
    this.#rules++;
    return ring;
  }

  /**
   * Forgets rules that nothing was asked of for an hour or, where there are none, the one that has been idle longest,
   * if that is some minutes. Once a step, as it looks at all of them.
   */
  #makeRoom(): boolean {
    if (this.#lookedForRoom === this.#step) return false;
    this.#lookedForRoom = this.#step;
    let idlest = { last: this.#step - LEAST_IDLE_STEPS, domain: '', rule: '' };
    for (const [domain, rules] of this.#byDomain) {
      for (const [rule, { last }] of rules) {
        if (this.#step - last >= STEPS) this.#forget(domain, rule);
        else if (last < idlest.last) idlest = { last, domain, rule };
      }
    }
    if (this.#rules >= this.#maxRules && this.#forget(idlest.domain, idlest.rule))
      this.#crowdedAt = this.#step;
    return this.#rules < this.#maxRules;
  }

  #forget(domain: string, rule: string): boolean {
    const rules = this.#byDomain.get(domain);
    if (rules?.delete(rule) !== true) return false;
    this.#rules--;
    if (rules.size === 0) this.#byDomain.delete(domain);
    return true;
  }
}
