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

/** A rule with what became of its descriptors in the last minute, and in the last hour. */
export interface RuleCounts {
  readonly domain: string;
  readonly rule: string;
  readonly minute: StepCounts;
  readonly hour: StepCounts;
}

const OK = 0;
const DENIED = STEPS;
const WOULD = 2 * STEPS;

/** Counts of the last {@link STEPS} steps. Steps that nothing was counted in cost nothing. */
class Ring {
  /** The step that was counted in last; what is older than an hour before it has been overwritten. */
  last: number;
  /** The three rows one after the other: counts of a step lie at its number modulo STEPS. */
  readonly #counts = new Float32Array(3 * STEPS);

  constructor(step: number) {
    this.last = step;
  }

  add(step: number, { ok, denied, would }: StepCounts): void {
    this.#clearUpTo(step);
    const at = step % STEPS;
    const counts = this.#counts;
    counts[OK + at] = (counts[OK + at] as number) + ok;
    counts[DENIED + at] = (counts[DENIED + at] as number) + denied;
    counts[WOULD + at] = (counts[WOULD + at] as number) + would;
  }

  /** Of one row; 0 where nothing is known of that step. */
  at(row: number, step: number): number {
    const isKept = step >= 0 && step <= this.last && step > this.last - STEPS;
    return isKept ? (this.#counts[row + (step % STEPS)] as number) : 0;
  }

  /** Of the `steps` steps up to `end`. */
  sum(end: number, steps: number): StepCounts {
    let [ok, denied, would] = [0, 0, 0];
    for (let step = end - steps + 1; step <= end; step++) {
      ok += this.at(OK, step);
      denied += this.at(DENIED, step);
      would += this.at(WOULD, step);
    }
    return { ok, denied, would };
  }

  #clearUpTo(step: number): void {
    const counts = this.#counts;
    for (let next = Math.max(this.last + 1, step - STEPS + 1); next <= step; next++) {
      const at = next % STEPS;
      counts[OK + at] = counts[DENIED + at] = counts[WOULD + at] = 0;
    }
    this.last = Math.max(this.last, step);
  }
}

/** Bytes that the counts of one rule take, or of all rules together. */
export const RING_BYTES = 3 * STEPS * Float32Array.BYTES_PER_ELEMENT;

/** Rules that {@link RateHistory.sums} looks at between two pauses. */
const STRETCH = 8;

/**
 * How many descriptors were let through and denied in the last hour, step by step: of all rules together, and of each
 * of `maxRules` rules at most, those that came first. A rule that is idle makes room for another one.
 *
 * Whoever counts ends the steps, once what belongs to a step is counted: {@link RateHistory.end}.
 */
export class RateHistory {
  readonly #maxRules: number;
  readonly #all = new Ring(0);
  readonly #byDomain = new Map<string, Map<string, Ring>>();
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

  /** Ends the step, and those after it in which there was nobody to count: `steps` in all. */
  end(steps = 1): void {
    this.#step += Math.max(1, steps);
  }

  /** The last step that is over, of all rules. */
  lastStep(): StepCounts {
    return this.#all.sum(this.#step - 1, 1);
  }

  /** Counts of each step that is over, the oldest first, of all rules or of one; undefined for one that is not kept. */
  rows(rule?: {
    readonly domain: string;
    readonly rule: string;
  }): Record<keyof StepCounts, number[]> | undefined {
    const ring = rule === undefined ? this.#all : this.#byDomain.get(rule.domain)?.get(rule.rule);
    if (ring === undefined) return undefined;
    const count = Math.min(STEPS - 1, this.#step);
    const row = (of: number): number[] =>
      Array.from({ length: count }, (_, i) => ring.at(of, this.#step - count + i));
    return { ok: row(OK), denied: row(DENIED), would: row(WOULD) };
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

  #ringOf(domain: string, rule: string): Ring | undefined {
    const known = this.#byDomain.get(domain)?.get(rule);
    if (known !== undefined) return known;
    if (this.#rules >= this.#maxRules && !this.#makeRoom()) {
      this.#crowdedAt = this.#step;
      return undefined;
    }
    const ring = new Ring(this.#step);
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
