import { RuleUses } from '../../limiter/holds/use-quantiles.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { LearnedSpec, Rule } from '../../policy/rule.js';

/** Maximum number of buckets whose uses are remembered, for a rule and in total. */
export const MAX_RULE_BUCKETS = 512;
export const MAX_BUCKETS = 8192;

/** The current estimate of a rule. */
export interface RuleEstimate {
  readonly domain: string;
  readonly rule: string;
  readonly hits: number;
}

interface KnownRule {
  readonly domain: string;
  readonly rule: Rule;
  readonly uses: RuleUses;
}

interface LearningRule {
  readonly domain: string;
  readonly rule: Rule;
  readonly learned: LearnedSpec;
}

/**
 * The estimates of rules with `hold.learned`. Each process learns from the settlements that it gets, and starts with
 * `start`. A rule keeps what it learned in a reload that keeps its path and the shape of its buckets.
 */
export class LearnedEstimates {
  #rules = new Map<string, KnownRule>();
  /** Finds the rules of requests quickly. */
  readonly #found = new WeakMap<Rule, RuleUses>();
  #ruleBuckets = MAX_RULE_BUCKETS;

  /** Returns the hits that a take from a bucket of this rule holds; undefined if the rule does not learn. */
  estimate(domain: string, rule: Rule, key: string): number | undefined {
    return this.#usesOf(domain, rule)?.estimate(key);
  }

  /** Learns from a settlement that reported a use. */
  learn(domain: string, rule: Rule, key: string, used: number): void {
    this.#usesOf(domain, rule)?.learn(key, used);
  }

  /** Forgets the rules that the new policies do not have. The others share the maximum number of buckets. */
  setPolicies(policies: PolicySet | undefined): void {
    const learning = [...(policies?.domains.values() ?? [])].flatMap(learningRules);
    this.#ruleBuckets = Math.min(MAX_RULE_BUCKETS, Math.floor(MAX_BUCKETS / learning.length));
    const before = this.#rules;
    this.#rules = new Map();
    for (const { domain, rule, learned } of learning) {
      const name = nameOf(domain, rule);
      const uses = before.get(name)?.uses;
      if (uses === undefined) continue;
      uses.change(learned, this.#ruleBuckets);
      this.#rules.set(name, { domain, rule, uses });
      this.#found.set(rule, uses);
    }
  }

  /** Number of buckets whose uses are remembered. */
  get bucketCount(): number {
    return [...this.#rules.values()].reduce((sum, { uses }) => sum + uses.bucketCount, 0);
  }

  /** Yields the current estimates of the rules that requests have matched. */
  *current(): Generator<RuleEstimate> {
    for (const { domain, rule, uses } of this.#rules.values()) {
      yield { domain, rule: rule.path, hits: uses.estimateOfAll() };
    }
  }

  #usesOf(domain: string, rule: Rule): RuleUses | undefined {
    const learned = rule.hold?.learned;
    if (learned === undefined) return undefined;
    const found = this.#found.get(rule);
    if (found !== undefined) return found;
    const name = nameOf(domain, rule);
    const uses = this.#rules.get(name)?.uses ?? new RuleUses(learned, this.#ruleBuckets);
    this.#rules.set(name, { domain, rule, uses });
    this.#found.set(rule, uses);
    return uses;
  }
}

/** Returns a name of a rule that reloads keep. */
function nameOf(domain: string, { path, bucketSuffix }: Rule): string {
  return JSON.stringify([domain, path, bucketSuffix]);
}

function learningRules({ domain, hasHolds, rules }: DomainPolicy): readonly LearningRule[] {
  if (!hasHolds) return [];
  return rules.flatMap((rule) => {
    const learned = rule.hold?.learned;
    return learned === undefined ? [] : [{ domain, rule, learned }];
  });
}
