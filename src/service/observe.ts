import { CODE, type RateLimitRequest, type RateLimitResponse } from '../codec/messages.js';
import type { Clock } from '../limiter/clock.js';
import type { Entry } from '../limiter/entry.js';
import { isBeyondLimit } from '../limiter/rate.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { DomainPolicy } from '../policy/policy.js';
import { redactEntries } from '../policy/redact.js';
import { secretKeysOf } from './answer/answer.js';
import { tightestOf } from './answer/denial.js';
import type { Caller } from './caller.js';
import { toldControl } from './controls/told-control.js';
import type { DecisionLine, DecisionObserver } from './decision-observer.js';
import { overrideStat } from './override-stat.js';
import type { Decision, PlannedTake, RequestContext } from './plan.js';
import type { DecisionLog, UndecidedReason } from './record/decision-record.js';
import { recordOf, type ToldRequest, tellSpan } from './record/record-of.js';

/** Descriptors of one request that are logged. */
export const MAX_LOGGED_DESCRIPTORS = 100;
/** Entries of one descriptor that are logged; a line is for people to read. */
export const MAX_LOGGED_ENTRIES = 32;

function codeName(overLimit: boolean): 'OK' | 'OVER_LIMIT' {
  return overLimit ? 'OVER_LIMIT' : 'OK';
}

/** Entries as a line shows them: secrets redacted, and as many as anybody reads. */
function shownEntries(
  entries: readonly Entry[],
  secretKeys: ReadonlySet<string>,
): Pick<DecisionLine, 'entries' | 'moreEntries'> {
  const more = entries.length - MAX_LOGGED_ENTRIES;
  if (more <= 0) return { entries: redactEntries(entries, secretKeys) };
  return { entries: redactEntries(entries.slice(0, MAX_LOGGED_ENTRIES), secretKeys), moreEntries: more };
}

/** Tells an observer what became of requests. */
export class Observation {
  private readonly observer: DecisionObserver;
  private readonly clock: Clock;
  private readonly log: DecisionLog | undefined;

  /** `log` is told of samples of them. */
  constructor(observer: DecisionObserver, clock: Clock, log: DecisionLog | undefined) {
    this.observer = observer;
    this.clock = clock;
    this.log = log;
  }

  /** Whether anybody wants to know when a request came. */
  wantsStart(): boolean {
    return this.log !== undefined || this.observer.logsDecisions();
  }

  /** Of an answered request; of a large one, its decisions from `from` on and before `to`. */
  answered(
    context: RequestContext,
    response: RateLimitResponse,
    from = 0,
    to = context.decisions.length,
  ): void {
    const { observer } = this;
    const { policy, decisions, caller, startMicros, blocked } = context;
    const { buckets } = observer;
    const logs = observer.logsDecisions();
    const passes = response.overallCode !== CODE.OVER_LIMIT;
    for (let index = from; index < to; index++) {
      const decision = decisions[index] as Decision;
      if (blocked || decision.control !== undefined) {
        this.controlled(context, decision, index);
        continue;
      }
      const { match, takes, candidate } = decision;
      this.counted(policy, decision);
      // A quota that is over beside one that is not says OVER_LIMIT of itself, but lets the request pass.
      const overLimit =
        response.overallCode === CODE.OVER_LIMIT && response.statuses[index]?.code === CODE.OVER_LIMIT;
      for (let at = 0; at < takes.length; at++) {
        const take = takes[at] as PlannedTake;
        const { label, ruleEnforcement, outcome } = take;
        const limited = outcome?.limited === true;
        const denied = overLimit && limited && ruleEnforcement !== 'observe';
        observer.decided(policy.domain, label, denied, limited && !denied);
        if (buckets !== undefined) {
          if (denied) buckets.denied(policy, match, take);
          else if (passes && take.hits > 0 && !take.refund) buckets.letThrough(policy, match, take);
        }
        const together = limited ? outcome?.together : undefined;
        if (limited && (together !== undefined || isBeyondLimit(take.rate, take.hits, take.refund))) {
          const { reportedLimit } = take.rate;
          const hits = together ?? take.hits;
          observer.neverPasses(policy.domain, label, hits, reportedLimit, take.rule ?? policy);
        }
        if (take.rate.maxDebt > 0) observer.debtAsked(policy.domain, label, take.hits, take.refund);
        if (outcome !== undefined && outcome.forgiven > 0) {
          observer.forgiven(policy.domain, label, outcome.forgiven);
        }
      }
      const candidateOver = candidate?.outcome?.limited;
      if (candidateOver !== undefined) {
        observer.candidate(policy.domain, (candidate as PlannedTake).label, overLimit, candidateOver);
      }
      const first = takes.length === 0 ? match.rules[0] : undefined;
      const unlimited = first === undefined || first.candidate ? '' : first.path;
      if (unlimited !== '') observer.decided(policy.domain, unlimited, false, false);
      else if (takes.length === 0 && match.exceeded === undefined) {
        // Where a candidate stands alone somebody has thought of them.
        observer.unmatched(policy.domain, match.entries, match.onUnmatched !== 'warn');
      }
      if (logs && index < MAX_LOGGED_DESCRIPTORS) {
        const shown = tightestOf(takes, undefined);
        const rule = shown?.label ?? takes[0]?.label ?? unlimited;
        observer.logDecision({
          request: caller.requestName ?? '',
          domain: policy.domain,
          ...shownEntries(match.entries, policy.secretKeys),
          rule,
          unmatched: rule !== '' ? undefined : match.exceeded === undefined ? 'entries' : 'work',
          code: codeName(overLimit),
          remaining: shown?.outcome.remaining,
          candidate: candidateOver === undefined ? undefined : codeName(candidateOver),
          micros: this.clock.monotonicMicros() - startMicros,
        });
      }
    }
    if (to === decisions.length) this.record(context, response);
  }

  /** Of a descriptor that a control decided, or that no limit was asked about as another one was blocked. */
  private controlled(
    { policy, caller, startMicros }: RequestContext,
    { match, control }: Decision,
    index: number,
  ): void {
    const { observer } = this;
    const isBlock = control?.kind === 'block';
    if (control !== undefined) {
      observer.decided(policy.domain, control.kind, isBlock, false);
      observer.controlled(policy.domain, control.kind);
      if (isBlock) observer.buckets?.blocked(policy, match);
    }
    if (!observer.logsDecisions() || index >= MAX_LOGGED_DESCRIPTORS) return;
    observer.logDecision({
      request: caller.requestName ?? '',
      domain: policy.domain,
      ...shownEntries(match.entries, policy.secretKeys),
      rule: control?.kind ?? '',
      unmatched: undefined,
      code: codeName(isBlock),
      remaining: undefined,
      candidate: undefined,
      control: control === undefined ? undefined : toldControl(control),
      micros: this.clock.monotonicMicros() - startMicros,
    });
  }

  /** Of a request that was answered without a decision. */
  undecided(told: ToldRequest, response: RateLimitResponse, reason: UndecidedReason): void {
    // What was planned of it by then decided nothing.
    const { request, policy, caller, startMicros } = told;
    this.record({ request, policy, caller, startMicros, decisions: [] }, response, reason);
  }

  private record(told: ToldRequest, response: RateLimitResponse, reason?: UndecidedReason): void {
    const { trace } = told.caller;
    if (this.log === undefined && trace === undefined) return;
    if (trace?.span !== undefined) tellSpan(trace.span, told, response, reason);
    const sample = this.log?.sample(response.overallCode === CODE.OVER_LIMIT) ?? 0;
    if (sample === 0) return;
    const micros = this.clock.monotonicMicros() - told.startMicros;
    this.log?.write(recordOf(told, response, { micros, sample, reason }));
  }

  /** For the reference's counters. */
  counted(policy: DomainPolicy, { match, takes }: Decision): void {
    for (let at = 0; at < takes.length; at++) {
      const take = takes[at] as PlannedTake;
      const { rule, outcome } = take;
      const stat = rule === undefined ? overrideStat(policy, match.entries) : take.stat;
      const shadowed = outcome?.limited === true && take.ruleEnforcement === 'observe';
      this.observer.counted(stat, rule === undefined, take, outcome, shadowed);
    }
  }

  /** Of a request to a domain that no policy has. */
  unknownDomain(
    request: RateLimitRequest,
    policies: PolicySet,
    response: RateLimitResponse,
    startMicros: number,
    caller: Caller,
  ): void {
    const { observer } = this;
    observer.unknownDomain(request.domain, request.descriptors.length);
    if (!this.wantsStart() && caller.trace === undefined) return;
    const secretKeys = secretKeysOf(policies);
    const policy = { domain: request.domain, secretKeys };
    this.undecided({ request, policy, caller, startMicros, decisions: [] }, response, 'unknown_domain');
    if (!observer.logsDecisions()) return;
    for (const { entries } of request.descriptors.slice(0, MAX_LOGGED_DESCRIPTORS)) {
      observer.logDecision({
        request: caller.requestName ?? '',
        domain: request.domain,
        ...shownEntries(entries, secretKeys),
        rule: '',
        unmatched: 'domain',
        code: 'OK',
        remaining: undefined,
        candidate: undefined,
        micros: this.clock.monotonicMicros() - startMicros,
      });
    }
  }
}
