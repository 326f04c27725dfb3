import { CODE, type Descriptor, type RateLimitResponse } from '../../codec/messages.js';
import type { Entry } from '../../limiter/entry.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { redactEntries } from '../../policy/redact.js';
import { tightestOf } from '../answer/denial.js';
import {
  type DescriptorState,
  hitsOf,
  isSoft,
  type MatchedTake,
  type RequestContext,
} from '../request-context.js';
import {
  codeName,
  type DecisionRecord,
  type DescriptorRecord,
  type HoldRecord,
  MAX_RECORDED_HOLDS,
  type UndecidedReason,
} from './decision-record.js';
import type { DecisionSpan } from './request-trace.js';

/** Maximum number of descriptors in a record. */
export const MAX_RECORDED_DESCRIPTORS = 100;
/** Maximum number of entries per descriptor in a record. */
export const MAX_RECORDED_ENTRIES = 32;
/** Maximum number of exceeded soft limits per descriptor in a record. */
const MAX_RECORDED_SOFT_LIMITS = 32;

/** The part of a {@link RequestContext} that logs and spans need; a domain without a policy has no complete one. */
export interface ReportedRequest
  extends Pick<RequestContext, 'request' | 'caller' | 'startMicros' | 'decidedMicros' | 'states'> {
  readonly policy: Pick<CompiledPolicy, 'domain' | 'secretKeys'>;
}

/** Returns the record of a request from its decisions, or from `reason` if the request has no decisions. */
export function recordOf(
  reported: ReportedRequest,
  response: RateLimitResponse,
  { sample, wallMicros, micros, reason }: Pick<DecisionRecord, 'sample' | 'wallMicros' | 'micros' | 'reason'>,
): DecisionRecord {
  const { request, policy, caller } = reported;
  const all = request.descriptors;
  const descriptors: DescriptorRecord[] = [];
  for (let at = 0; at < Math.min(all.length, MAX_RECORDED_DESCRIPTORS); at++) {
    descriptors.push(descriptorRecord(reported, response, at));
  }
  return {
    sample,
    wallMicros,
    traceId: caller.trace?.traceId ?? '',
    request: caller.requestName ?? '',
    domain: policy.domain,
    code: codeName(response.overallCode === CODE.OVER_LIMIT),
    reason,
    micros,
    descriptors,
    moreDescriptors: all.length - descriptors.length,
  };
}

/** Records a summary of the decision in the span of a request. */
export function recordSpan(
  span: DecisionSpan,
  { policy, states }: ReportedRequest,
  { overallCode, statuses }: RateLimitResponse,
  reason: UndecidedReason | undefined,
): void {
  const overLimit = overallCode === CODE.OVER_LIMIT;
  const denying = overLimit ? statuses.findIndex(({ code }) => code === CODE.OVER_LIMIT) : -1;
  const shownDecision = states[denying] ?? states.find(({ takes }) => takes.length > 0);
  const shown = shownDecision === undefined ? undefined : tightestOf(shownDecision.takes, undefined);
  span.decided(
    policy.domain,
    codeName(overLimit),
    shown?.rulePath ?? '',
    reason,
    states.flatMap(holdsOf)[0]?.event,
  );
}

function descriptorRecord(
  { request, policy, states }: ReportedRequest,
  response: RateLimitResponse,
  at: number,
): DescriptorRecord {
  const { secretKeys } = policy;
  const descriptor = request.descriptors[at] as Descriptor;
  const state = states[at];
  const { entries: sent, limit, isNegativeHits } = descriptor;
  const entries = state?.match.entries ?? sent;
  const takes = state?.takes ?? [];
  const shown = tightestOf(takes, undefined);
  const first = takes[0]?.rulePath ?? state?.match.rules[0]?.path;
  // A quota that is over its limit next to one that is not has the status OVER_LIMIT, but allows the request.
  const overLimit =
    response.overallCode === CODE.OVER_LIMIT && response.statuses[at]?.code === CODE.OVER_LIMIT;
  const hasToken = state?.settlementRecords !== undefined && state.oldestSettlements.length === 0;
  return {
    entries: shownEntries(entries, secretKeys),
    sent: entries === sent || hasToken ? undefined : shownEntries(sent, secretKeys),
    moreEntries: Math.max(0, Math.max(entries.length, sent.length) - MAX_RECORDED_ENTRIES),
    hits: hitsOf(descriptor, request),
    refund: isNegativeHits,
    override: limit,
    rule: shown?.rulePath ?? first ?? '',
    className: shown?.rule?.className ?? '',
    code: codeName(overLimit),
    limit: shown?.rate.reportedLimit,
    remaining: shown?.outcome.remaining,
    wouldBeThrottled: !overLimit && takes.some((take) => take.outcome?.overLimit === true && !isSoft(take)),
    overSoftLimits: overSoftLimits(takes),
    holds: state === undefined ? [] : holdsOf(state),
  };
}

function overSoftLimits(takes: readonly MatchedTake[]): readonly string[] {
  const over = takes.filter((take) => take.outcome?.overLimit === true && isSoft(take));
  return over.slice(0, MAX_RECORDED_SOFT_LIMITS).map(({ rulePath }) => rulePath);
}

function holdsOf({ takes, settlementRecords }: DescriptorState): readonly HoldRecord[] {
  const records = [...(settlementRecords ?? [])];
  for (const { rulePath, hits, holds, outcome } of takes) {
    if (outcome?.hold !== 'placed' || holds === undefined) continue;
    records.push({ event: 'placed', id: holds.id, rule: rulePath, hits });
  }
  return records.slice(0, MAX_RECORDED_HOLDS);
}

function shownEntries(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  const kept = entries.length > MAX_RECORDED_ENTRIES ? entries.slice(0, MAX_RECORDED_ENTRIES) : entries;
  return redactEntries(kept, secretKeys);
}
