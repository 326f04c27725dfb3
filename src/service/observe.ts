import { CODE, type RateLimitRequest, type RateLimitResponse } from '../codec/messages.js';
import type { Clock } from '../limiter/clock.js';
import type { Entry } from '../limiter/entry.js';
import { isBeyondLimit } from '../limiter/rate.js';
import type { CompiledPolicy, PolicySet } from '../policy/compiled-policy.js';
import type { Match } from '../policy/policy.js';
import { redactEntries } from '../policy/redact.js';
import type { Rule, RuleMetrics } from '../policy/rule.js';
import { secretKeysOf } from './answer/answer.js';
import type { Caller } from './caller.js';
import type { DecisionCounts, DecisionObserver, DecisionWarnings } from './decision-observer.js';
import {
  decisionLine,
  LOGGED_UNKNOWN_DOMAIN,
  loggedLimits,
  MAX_LOGGED_DESCRIPTORS,
  unlimitedRule,
} from './record/decision-line.js';
import type { DecisionLog, GivenUpReason, UndecidedReason } from './record/decision-record.js';
import { type ReportedRequest, recordOf, recordSpan } from './record/record-of.js';
import {
  type DescriptorState,
  isSoft,
  type MatchedTake,
  type RequestContext,
  skippedLimits,
} from './request-context.js';

/** Reports the outcome of each request to metrics, logs and traces. No other code reports decisions. */
export class Observation {
  readonly counts: DecisionCounts;
  private readonly warnings: DecisionWarnings;
  private readonly observer: DecisionObserver;
  private readonly clock: Clock;
  private readonly log: DecisionLog | undefined;

  /** `log` receives samples of the decisions. */
  constructor(observer: DecisionObserver, clock: Clock, log: DecisionLog | undefined) {
    this.counts = observer.counts;
    this.warnings = observer.warnings;
    this.observer = observer;
    this.clock = clock;
    this.log = log;
  }

  /** Whether the time at which a request arrived is needed. */
  get wantsStart(): boolean {
    return this.log !== undefined || this.warnings.logsDecisions;
  }

  /** Whether the time at which a request was decided is needed. */
  get wantsDecisionTime(): boolean {
    return this.log !== undefined;
  }

  /** Reports an answered request. */
  answered(context: RequestContext, response: RateLimitResponse): void {
    const { states } = context;
    const logs = this.warnings.logsDecisions;
    const passes = response.overallCode !== CODE.OVER_LIMIT;
    for (let index = 0; index < states.length; index++) {
      const state = states[index] as DescriptorState;
      // A quota that is over its limit next to one that is not has the status OVER_LIMIT, but allows the request.
      const overLimit = !passes && response.statuses[index]?.code === CODE.OVER_LIMIT;
      this.countDescriptor(context.policy, state, overLimit, passes);
      if (!logs || index >= MAX_LOGGED_DESCRIPTORS) continue;
      const micros = this.clock.monotonicMicros() - context.startMicros;
      const logged = loggedLimits(state, overLimit);
      this.warnings.logDecision(decisionLine(context, state.match.entries, logged, micros));
    }
    this.record(context, response);
  }

  /** Reports a request that got an answer without a decision. */
  undecided(context: RequestContext, response: RateLimitResponse, reason: UndecidedReason): void {
    const { request, policy, caller, startMicros } = context;
    // Decisions that were planned before the request was abandoned had no effect.
    this.record({ request, policy, caller, startMicros, decidedMicros: 0, states: [] }, response, reason);
  }

  /** Reports a request for a domain that has no policy. */
  unknownDomain(
    request: RateLimitRequest,
    policies: PolicySet,
    response: RateLimitResponse,
    startMicros: number,
    caller: Caller,
  ): void {
    this.countUnknownDomain(request.domain, request.descriptors.length);
    if (!this.wantsStart && caller.trace === undefined) return;
    const policy = { domain: request.domain, secretKeys: secretKeysOf(policies) };
    const reported: ReportedRequest = {
      request,
      policy,
      caller,
      startMicros,
      decidedMicros: 0,
      states: [],
    };
    this.record(reported, response, 'unknown_domain');
    if (!this.warnings.logsDecisions) return;
    for (const { entries } of request.descriptors.slice(0, MAX_LOGGED_DESCRIPTORS)) {
      const micros = this.clock.monotonicMicros() - startMicros;
      this.warnings.logDecision(decisionLine(reported, entries, LOGGED_UNKNOWN_DOMAIN, micros));
    }
  }

  /** Counts a request for a domain that has no policy, and warns about it. */
  countUnknownDomain(domain: string, descriptors: number): void {
    this.warnings.unlimited.unknownDomain(domain, this.counts.unknownDomain(domain, descriptors));
  }

  /** Reports a request that got an answer without a decision. */
  givenUp(domain: string, why: GivenUpReason, denied: boolean): void {
    this.counts.requestGivenUp(domain, why);
    this.warnings.givenUp(domain, why, denied);
  }

  /** Counts a descriptor that was not decided in the reference's statistics. */
  counted(policy: CompiledPolicy, { match, takes }: DescriptorState): void {
    for (const take of takes) {
      this.counterOf(policy, match, take).countReference(take.statName, take, take.outcome, isShadowed(take));
    }
  }

  private counterOf(policy: CompiledPolicy, match: Match, { rule, rulePath }: MatchedTake): RuleMetrics {
    const { domain } = policy;
    if (rule !== undefined) return this.counterOfRule(domain, rule);
    return this.counts.counterOf(domain, rulePath, overrideStat(policy, match.entries), true);
  }

  /** Returns the counter of a rule, which the rule keeps. */
  private counterOfRule(domain: string, rule: Rule): RuleMetrics {
    const { counter } = rule;
    if (counter?.owner === this.counts) return counter;
    rule.counter = this.counts.counterOf(domain, rule.path, rule.statName, false);
    return rule.counter;
  }

  /** Reports a decided descriptor. */
  private countDescriptor(
    policy: CompiledPolicy,
    state: DescriptorState,
    overLimit: boolean,
    passes: boolean,
  ): void {
    const { match, takes } = state;
    if (state.onlySettles) return;
    const { domain } = policy;
    const { buckets } = this.observer;
    for (let at = 0; at < takes.length; at++) {
      const take = takes[at] as MatchedTake;
      const limited = take.outcome?.overLimit === true;
      const denied = overLimit && limited && take.ruleEnforcement !== 'observe';
      const overSoft = limited && isSoft(take);
      const counter = this.counterOf(policy, match, take);
      counter.countReference(take.statName, take, take.outcome, isShadowed(take));
      counter.countDecision(denied, limited && !denied && !overSoft);
      if (overSoft && passes) this.counts.softLimitExceeded(domain, take.rulePath, take.appliesOnOver);
      if (passes && take.chain.length > 0)
        for (const { rulePath } of skippedLimits(take)) this.counts.spilled(domain, rulePath);
      if (buckets !== undefined) {
        const isUsed = passes && take.hits > 0 && !take.refund;
        const measure = denied ? 'denied' : isUsed ? 'used' : undefined;
        const hits = measure === undefined ? 0 : buckets.samplers[measure].take(denied ? 1 : take.hits);
        if (measure !== undefined && hits > 0) buckets.count(measure, hits, policy, match, take);
      }
      if (limited && !overSoft) this.warnNeverPasses(policy, take);
      if (Number.isFinite(take.rate.minChargeHits))
        this.warnings.charges.asked(domain, take.rulePath, take.hits, take.refund);
      if (take.outcome?.hold === 'placed') this.counts.holds.placed(domain, take.rulePath, take.hits);
      const uncollectedHits = take.outcome?.uncollectedHits ?? 0;
      if (uncollectedHits > 0) this.counts.uncollected(domain, take.rulePath, uncollectedHits);
    }
    if (takes.length === 0) this.unlimitedOrUnmatched(domain, state);
  }

  private unlimitedOrUnmatched(domain: string, state: DescriptorState): void {
    const { match } = state;
    const rule = unlimitedRule(state);
    if (rule !== undefined) this.counterOfRule(domain, rule).countDecision(false, false);
    else {
      const series = this.counts.unmatched(domain, match.entries);
      if (match.onUnmatched === 'warn') this.warnings.unlimited.unmatched(domain, match.entries, series);
    }
  }

  private warnNeverPasses(
    policy: CompiledPolicy,
    { rate, hits, refund, outcome, rulePath, rule }: MatchedTake,
  ): void {
    const together = outcome?.combinedHits;
    if (together === undefined && !isBeyondLimit(rate, hits, refund)) return;
    this.warnings.neverPasses(policy.domain, rulePath, together ?? hits, rate.reportedLimit, rule ?? policy);
  }

  private record(reported: ReportedRequest, response: RateLimitResponse, reason?: UndecidedReason): void {
    const { trace } = reported.caller;
    if (this.log === undefined && trace === undefined) return;
    if (trace?.span !== undefined) recordSpan(trace.span, reported, response, reason);
    const sample = this.log?.sample(response.overallCode === CODE.OVER_LIMIT) ?? 0;
    if (sample === 0) return;
    const micros = this.clock.monotonicMicros() - reported.startMicros;
    const wallMicros = reported.decidedMicros || this.clock.wallMicros();
    this.log?.write(recordOf(reported, response, { wallMicros, micros, sample, reason }));
  }
}

/** Returns whether the hits of a take did not fit, but `shadow_mode` or the phase allowed them. */
function isShadowed(take: MatchedTake): boolean {
  return take.outcome?.overLimit === true && take.ruleEnforcement === 'observe' && !isSoft(take);
}

/**
 * Returns the name of a limit override in envoyproxy/ratelimit's statistics: `domain.key_value.key`. Secret values are
 * redacted. `entries` are those after `derive`.
 */
function overrideStat(policy: CompiledPolicy, entries: readonly Entry[]): string {
  const shown = redactEntries(entries, policy.secretKeys);
  const parts = shown.map(({ key, value }) => (value === '' ? key : `${key}_${value}`));
  return `${policy.domain}.${parts.join('.')}`;
}
