import type { CandidateDecision } from '../decide/verdict.js';
import type { CandidateReport } from '../report/report.js';

/** Counts the decisions of candidates, by domain and rule. */
export class CandidateTally {
  readonly #byDomain = new Map<string, Map<string, Mutable>>();

  add({ domain, label, denied, liveDenied }: CandidateDecision): void {
    const counts = this.#of(domain, label);
    counts.requests++;
    if (denied) counts.denied++;
    if (denied && !liveDenied) counts.newlyDenied++;
    if (!denied && liveDenied) counts.newlyAllowed++;
  }

  #of(domain: string, rule: string): Mutable {
    let byRule = this.#byDomain.get(domain);
    if (byRule === undefined) {
      byRule = new Map();
      this.#byDomain.set(domain, byRule);
    }
    let counts = byRule.get(rule);
    if (counts === undefined) {
      counts = { domain, rule, requests: 0, denied: 0, newlyDenied: 0, newlyAllowed: 0 };
      byRule.set(rule, counts);
    }
    return counts;
  }

  /** Returns the candidates, with those first that would newly deny most. */
  report(): readonly CandidateReport[] {
    return [...this.#byDomain.values()]
      .flatMap((byRule) => [...byRule.values()])
      .toSorted((one, other) => other.newlyDenied - one.newlyDenied);
  }
}

type Mutable = { -readonly [Field in keyof CandidateReport]: CandidateReport[Field] };
