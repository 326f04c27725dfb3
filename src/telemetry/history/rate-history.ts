import type { StoreFailureAnswer } from '../../limiter/failure-policy.js';
import type { RateCounts } from '../rule-series.js';

/** Number of answers since the previous read that the store did not decide. */
export interface FailureCounts {
  /** Calls that got an error instead of a decision. */
  readonly errors: number;
  /** Descriptors that `on_store_failure` allowed, denied, or decided with local buckets. */
  readonly failure_allow: number;
  readonly failure_deny: number;
  readonly failure_local: number;
}

export const NO_FAILURES: FailureCounts = { errors: 0, failure_allow: 0, failure_deny: 0, failure_local: 0 };

/** Adds up failure counts. */
export function sumOfFailures(all: readonly FailureCounts[]): FailureCounts {
  const keys = Object.keys(NO_FAILURES) as (keyof FailureCounts)[];
  const sums = keys.map((key) => [key, all.reduce((sum, one) => sum + one[key], 0)]);
  return Object.fromEntries(sums) as Record<keyof FailureCounts, number>;
}

/** Counts failures for one reader. */
export class FailureCounter {
  #counts: { -readonly [Key in keyof FailureCounts]: number } = { ...NO_FAILURES };

  refused(): void {
    this.#counts.errors++;
  }

  /** Counts a descriptor that `on_store_failure` answered. Its call with an error is counted as such. */
  answered(answer: StoreFailureAnswer): void {
    if (answer !== 'error') this.#counts[`failure_${answer}`]++;
  }

  take(): FailureCounts {
    const taken = this.#counts;
    this.#counts = { ...NO_FAILURES };
    return taken;
  }
}

/** Length of a step in seconds, and number of steps that are kept: an hour. */
export const STEP_SECONDS = 5;
export const STEPS = 720;
const STEPS_PER_MINUTE = 60 / STEP_SECONDS;
/** A rule is evicted for another one only after this many steps without a request: five minutes. */
const MIN_IDLE_STEPS = 300 / STEP_SECONDS;

/** Number of descriptors in one or more steps. */
export interface StepCounts {
  readonly ok: number;
  readonly denied: number;
  readonly would: number;
}

/** Columns that are counted for each rule. */
const COLUMNS: readonly (keyof StepCounts)[] = ['ok', 'denied', 'would'];

/** Counts of all rules together. */
export interface AllCounts extends StepCounts, FailureCounts {}
const ALL_COLUMNS: readonly (keyof AllCounts)[] = [
  ...COLUMNS,
  'errors',
  'failure_allow',
  'failure_deny',
  'failure_local',
];

/** Counts of a rule in the last minute and in the last hour. */
export interface RuleCounts {
  readonly domain: string;
  readonly rule: string;
  readonly minute: StepCounts;
  readonly hour: StepCounts;
}

/** Ring buffer with the counts of the last {@link STEPS} steps. A step without counts needs no work. */
class Ring<Column extends string> {
  /** Last step with a count. Counts from more than an hour before it are overwritten. */
  last: number;
  readonly #columns: readonly Column[];
  /** All columns, one after the other. The counts of a step are at its number modulo STEPS. */
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

  /** Returns the sums of the `steps` steps up to and including `end`. */
  sum(end: number, steps: number): Record<Column, number> {
    const first = Math.max(0, end - steps + 1, this.last - STEPS + 1);
    const last = Math.min(end, this.last);
    return this.#byColumn((column) => {
      let sum = 0;
      for (let step = first; step <= last; step++) sum += this.#counts[column * STEPS + (step % STEPS)] ?? 0;
      return sum;
    });
  }

  /** Returns the counts of each of the `steps` steps before `end`. */
  rows(end: number, steps: number): Record<Column, number[]> {
    return this.#byColumn((column) =>
      Array.from({ length: steps }, (_, i) => this.#at(column, end - steps + i)),
    );
  }

  /** 0 for steps that are not kept. */
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

/** Bytes of the counts of one rule, and of all rules together. */
export const RING_BYTES = COLUMNS.length * STEPS * Float32Array.BYTES_PER_ELEMENT;
export const ALL_RING_BYTES = ALL_COLUMNS.length * STEPS * Float32Array.BYTES_PER_ELEMENT;

/**
 * Number of allowed and denied descriptors in each step of the last hour, of all rules together and of each of up to
 * `maxRules` rules. Idle rules are evicted for new ones. The counts of all rules together include requests that the
 * store could not decide.
 *
 * The owner adds the counts of a step and then calls {@link RateHistory.end}.
 */
export class RateHistory {
  readonly #maxRules: number;
  readonly #all = new Ring(0, ALL_COLUMNS);
  readonly #byDomain = new Map<string, Map<string, Ring<keyof StepCounts>>>();
  #rules = 0;
  #step = 0;
  /** Step of the last search for idle rules. */
  #lastEvictionStep = -1;
  #overflowStep = Number.NEGATIVE_INFINITY;

  constructor(maxRules: number) {
    this.#maxRules = maxRules;
  }

  /** Whether the last hour had more rules than fit. */
  get hadTooManyRules(): boolean {
    return this.#step - this.#overflowStep < STEPS;
  }

  add(counts: RateCounts): void {
    this.#all.add(this.#step, counts);
    this.#findOrAddRing(counts.domain, counts.rule)?.add(this.#step, counts);
  }

  addFailures(counts: FailureCounts): void {
    this.#all.add(this.#step, counts);
  }

  /** Ends the current step, and further steps without counts: `steps` in total. */
  end(steps = 1): void {
    this.#step += Math.max(1, steps);
  }

  lastStep(): AllCounts {
    return this.#all.sum(this.#step - 1, 1);
  }

  /** In each complete step, oldest first. */
  allRows(): Record<keyof AllCounts, number[]> {
    return this.#all.rows(this.#step, Math.min(STEPS - 1, this.#step));
  }

  /** Returns the counts of one rule in each complete step, or undefined for a rule that is not kept. */
  rows({
    domain,
    rule,
  }: Pick<RateCounts, 'domain' | 'rule'>): Record<keyof StepCounts, number[]> | undefined {
    const ring = this.#byDomain.get(domain)?.get(rule);
    return ring?.rows(this.#step, Math.min(STEPS - 1, this.#step));
  }

  sums(): RuleCounts[] {
    const sums: RuleCounts[] = [];
    const end = this.#step - 1;
    for (const [domain, rules] of this.#byDomain) {
      for (const [rule, ring] of rules) {
        const hour = ring.sum(end, STEPS - 1);
        if (hour.ok + hour.denied > 0) {
          sums.push({ domain, rule, minute: ring.sum(end, STEPS_PER_MINUTE), hour });
        }
      }
    }
    return sums;
  }

  #findOrAddRing(domain: string, rule: string): Ring<keyof StepCounts> | undefined {
    const known = this.#byDomain.get(domain)?.get(rule);
    if (known !== undefined) return known;
    if (this.#rules >= this.#maxRules && !this.#evictIdle()) {
      this.#overflowStep = this.#step;
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
   * Evicts rules that were idle for an hour. Otherwise evicts the rule that was idle longest, if at least for five
   * minutes. Runs at most once per step, because it visits all rules. Returns whether a rule can be added.
   */
  #evictIdle(): boolean {
    if (this.#lastEvictionStep === this.#step) return false;
    this.#lastEvictionStep = this.#step;
    let idlest = { last: this.#step - MIN_IDLE_STEPS, domain: '', rule: '' };
    for (const [domain, rules] of this.#byDomain) {
      for (const [rule, { last }] of rules) {
        if (this.#step - last >= STEPS) this.#evict(domain, rule);
        else if (last < idlest.last) idlest = { last, domain, rule };
      }
    }
    if (this.#rules >= this.#maxRules && this.#evict(idlest.domain, idlest.rule))
      this.#overflowStep = this.#step;
    return this.#rules < this.#maxRules;
  }

  #evict(domain: string, rule: string): boolean {
    const rules = this.#byDomain.get(domain);
    if (rules?.delete(rule) !== true) return false;
    this.#rules--;
    if (rules.size === 0) this.#byDomain.delete(domain);
    return true;
  }
}
