import { describeFailurePolicy, isSameFailurePolicy } from '../../limiter/failure-policy.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { describeDecisionMetadata, describeHeaders, describeRequestHeaders } from '../../policy/describe.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { quantity } from '../../quantity.js';
import { effectOf, type LocalChange, type PolicyChange, plain, shift } from './change.js';
import { deriveChanges } from './derive-changes.js';
import { isEnforced, shareEffect } from './enforcement.js';
import { planChanges } from './plan-changes.js';
import { bodyOf, contextOf, phaseChange, unmatchedChange } from './rule-changes.js';
import { treeChanges } from './tree-changes.js';

/**
 * Returns the changes between two sets of policies: domains in the order of the new files, then removed domains.
 * `nowMicros` (wall clock) decides which phases have ended; schedules are compared from that time on. The time is
 * linear in the size of the policies, except for patterns that are added, removed or moved.
 */
export function diffPolicies(
  before: PolicySet,
  after: PolicySet,
  nowMicros: number,
): readonly PolicyChange[] {
  const changes: PolicyChange[] = [];
  for (const [domain, now] of after.domains) {
    const old = before.domains.get(domain);
    const found =
      old === undefined ? [wholeDomain('appears', now, nowMicros)] : domainChanges(old, now, nowMicros);
    for (const change of found) changes.push({ domain, path: '', ...change });
  }
  for (const [domain, old] of before.domains) {
    if (!after.domains.has(domain)) {
      changes.push({ domain, path: '', ...wholeDomain('vanishes', old, nowMicros) });
    }
  }
  return changes;
}

function wholeDomain(effect: 'appears' | 'vanishes', policy: DomainPolicy, nowMicros: number): LocalChange {
  const { rules } = policy;
  const count = `the domain, with ${quantity(rules.length, 'rule')}`;
  const text =
    effect === 'appears'
      ? `${count}; its requests previously had no limit`
      : `${count}; its requests now have no limit`;
  const tightens = effect === 'appears' && rules.some((rule) => isEnforced(rule, nowMicros));
  return { setting: 'domain', effect, tightens, text };
}

function domainChanges(
  before: CompiledPolicy,
  after: CompiledPolicy,
  nowMicros: number,
): readonly (LocalChange & { readonly path?: string })[] {
  const context = contextOf(before, after, nowMicros);
  const settings = [
    phaseChange(before.phase, after.phase, ON_OVERRIDES, nowMicros),
    failureChange(before, after),
    algorithmChange(before, after),
    headersChange(before, after),
    requestHeadersChange(before, after),
    plain('denied_response', bodyOf(before.deniedResponse), bodyOf(after.deniedResponse)),
    metadataChange(before, after),
    unmatchedChange(before.root, after.root),
  ].filter((change) => change !== undefined);
  const secretKeys = new Set([...before.secretKeys, ...after.secretKeys]);
  return [
    ...settings,
    ...deriveChanges(before.steps, after.steps),
    ...planChanges(before, after, nowMicros),
    ...treeChanges(before.root, after.root, secretKeys, context),
  ];
}

const ON_OVERRIDES = 'applies only to limits in requests; the effect on rules is listed below';

function failureChange(before: DomainPolicy, after: DomainPolicy): LocalChange | undefined {
  const [was, is] = [before.onStoreFailure, after.onStoreFailure];
  if (isSameFailurePolicy(was, is)) return undefined;
  const effect =
    shareEffect(was, is) ?? effectOf(is !== 'allow' && was !== 'deny', is === 'allow' || was === 'deny');
  return shift(
    'on_store_failure',
    effect,
    describeFailurePolicy(was),
    describeFailurePolicy(is),
    ON_OVERRIDES,
  );
}

/**
 * A change in either direction tightens, because each algorithm allows some requests that the other denies. See {@link
 * narrowings}.
 */
function algorithmChange(before: DomainPolicy, after: DomainPolicy): LocalChange | undefined {
  const [was, is] = [before.overrideAlgorithm, after.overrideAlgorithm];
  return was === is ? undefined : shift('algorithm', 'tightens', was, is, ON_OVERRIDES);
}

function headersChange(before: DomainPolicy, after: DomainPolicy): LocalChange | undefined {
  const [was, is] = [describeHeaders(before.responseHeaders), describeHeaders(after.responseHeaders)];
  return was === is ? undefined : shift('response_headers', 'changes', was, is);
}

function requestHeadersChange(before: DomainPolicy, after: DomainPolicy): LocalChange | undefined {
  const was = describeRequestHeaders(before.requestHeaders);
  const is = describeRequestHeaders(after.requestHeaders);
  return was === is ? undefined : shift('request_headers', 'changes', was, is);
}

function metadataChange(before: DomainPolicy, after: DomainPolicy): LocalChange | undefined {
  const was = describeDecisionMetadata(before.decisionMetadata);
  const is = describeDecisionMetadata(after.decisionMetadata);
  return was === is ? undefined : shift('decision_metadata', 'changes', was, is);
}
