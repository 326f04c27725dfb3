import type { Rate } from '../../limiter/rate.js';
import { describePlanned, describeRate } from '../../policy/describe.js';
import type { TrackedBucket } from '../decide/tracked-bucket.js';
import type { LimitingRule, MetLimit, Verdict } from '../decide/verdict.js';
import type { RuleReport, UseStep } from '../report/report.js';
import { AffectedCount } from './affected-count.js';
import { QuantileSketch } from './quantile-sketch.js';

/** Ends of the steps of {@link RuleReport.use}, as shares of the limit. */
const USE_STEPS = [0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.25, 1.5, 2, 5, 10];

/** Returns a use as a share of a limit; 0 for a limit of 0, which has no shares. */
export function shareOfLimit(use: number, { reportedLimit }: Rate): number {
  return reportedLimit === 0 ? 0 : use / reportedLimit;
}

/** Counts the requests that met one rule. */
export class RuleTally {
  readonly #rule: LimitingRule;
  readonly #affected = new AffectedCount();
  readonly #wanted = new QuantileSketch();
  #wouldBeThrottled = 0;
  #knowsUse = true;
  #peakUse = 0;
  /** {@link #peakUse} as a share of the limit. */
  #peakShare = 0;
  #callers = 0;
  #deniedCallers = 0;
  /** Callers by {@link USE_STEPS}, and those above. */
  readonly #use: number[] = [...USE_STEPS, Number.POSITIVE_INFINITY].map(() => 0);

  constructor(rule: LimitingRule) {
    this.#rule = rule;
  }

  /** The highest number of requests that may be newly denied. */
  get mostNewlyDenied(): number {
    return this.#affected.newlyDenied.most;
  }

  get longestDeniedMicros(): number {
    return this.#affected.longestDeniedMicros;
  }

  add(startMicros: number, before: Verdict, request: Verdict, limit: MetLimit): void {
    if (limit.wouldBeThrottled) this.#wouldBeThrottled++;
    this.#affected.add(startMicros, before, limit, request, limit.bucket);
    if (limit.wantedCapacity > 0) this.#wanted.add(limit.wantedCapacity);
  }

  /** Adds a bucket of this rule, after the last request. */
  addCaller({ peakUse, knowsUse, wasDenied, rate }: TrackedBucket): void {
    this.#callers++;
    if (wasDenied) this.#deniedCallers++;
    if (!knowsUse) this.#knowsUse = false;
    if (peakUse === 0 || !knowsUse) return;
    if (peakUse > this.#peakUse) this.#peakUse = peakUse;
    const share = shareOfLimit(peakUse, rate);
    if (share > this.#peakShare) this.#peakShare = share;
    const at = USE_STEPS.findIndex((upTo) => share <= upTo);
    const step = at < 0 ? USE_STEPS.length : at;
    this.#use[step] = (this.#use[step] ?? 0) + 1;
  }

  /** `knowsCapacity`: whether the log is complete enough to tell which capacity the callers would have needed. */
  report(knowsCapacity: boolean): RuleReport {
    const steps = this.#use.map((callers, at): UseStep => {
      const upTo = USE_STEPS[at];
      return upTo === undefined ? { callers } : { upTo, callers };
    });
    const { domain, label, rate, plan } = this.#rule;
    // Limits of different customers have no common capacity.
    const isKnown = knowsCapacity && this.#knowsUse && this.#peakUse > 0 && plan === undefined;
    return {
      ...this.#affected.report(),
      domain,
      rule: label,
      limit: describePlanned(plan) || describeRate(rate),
      wouldBeThrottled: this.#wouldBeThrottled,
      peakUse: this.#peakShare,
      callers: this.#callers,
      deniedCallers: this.#deniedCallers,
      ...(isKnown && { capacity: this.#capacity() }),
      use: steps,
    };
  }

  #capacity(): NonNullable<RuleReport['capacity']> {
    const none = Math.ceil(this.#peakUse - 1e-6);
    // Only buckets that refill have fractions.
    const round = this.#rule.rate.kind === 'token_bucket' ? Math.ceil : Math.round;
    const exceededBy = (share: number): number => Math.min(none, round(this.#wanted.exceededBy(share)));
    return { none, thousandth: exceededBy(0.001), hundredth: exceededBy(0.01) };
  }
}
