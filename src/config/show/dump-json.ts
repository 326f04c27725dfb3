import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import { describeMicros, headerFamilies } from '../../policy/describe.js';
import type { DomainStatus } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { PolicySet } from '../../policy/policy-set.js';
import {
  type DeniedResponse,
  type PhaseSchedule,
  phaseAt,
  type ResponseHeaders,
  type Rule,
} from '../../policy/rule.js';
import { matcherField } from '../../policy/values/value-matcher.js';
import type { ConfigProblem } from '../yaml/config-problem.js';
import { fullKey, ruleNodes } from './dump.js';
import { describeDeriveRule, describeStep } from './dump-tree.js';
import { jsonText, LazyList, LazyObject } from './json-text.js';

type DumpedDenied = 'problem+json' | { readonly body: string; readonly content_type?: string };

interface DumpedPhase {
  readonly now: string;
  /** When the phases of a schedule begin, RFC 3339; absent for those without a time. */
  readonly grace_period?: string;
  readonly active?: string;
}

interface DumpedMatcher {
  readonly key: string;
  readonly value_cidr?: readonly string[];
  readonly value_regex?: readonly string[];
}

interface DumpedRule {
  /** What `/rlconfig` shows for the rule in its plain form. */
  readonly full_key: string;
  /** The place in the tree: `tenant/resource_group=user-chats`. */
  readonly path: string;
  /** The keys of the entries that lead to the rule, from the first level on. */
  readonly keys: readonly string[];
  /** From the first level to the rule's, what nodes match by blocks or regular expressions; absent where none does. */
  readonly matchers?: readonly DumpedMatcher[];
  readonly name: string;
  readonly limit: unknown;
  readonly phase: DumpedPhase;
  readonly shadow_mode: boolean;
  readonly quota_mode: boolean;
  /** Share of denials that are enforced, 0 to 100. */
  readonly enforce_percent: number;
  /** Whether it is one, which denies nothing. */
  readonly candidate: boolean;
  readonly replaces: readonly string[];
  readonly on_store_failure: string;
  /** null: the file's count. */
  readonly response_headers: readonly string[] | null;
  readonly denied_response: DumpedDenied | null;
  readonly metadata: Rule['metadata'] | null;
  /** The rule's name in the statistics; null where values of requests enter it. */
  readonly stat_name: string | null;
}

/**
 * The whole configuration for machines, as JSON, for `/rlconfig?format=json`: how every domain stands, and of those in
 * force all rules. `wallMicros` says which phases are in force. Settings have the names of the policy file; secrets are
 * redacted. In pieces; '' is a pause.
 *
 * @param errors what is wrong with the files, or resources, now
 */
export function dumpJson(
  policySet: PolicySet | undefined,
  domains: readonly DomainStatus[],
  errors: readonly ConfigProblem[],
  wallMicros: number,
): Generator<string> {
  const dumped = new LazyObject({
    // While nothing was ever loaded there is none.
    version: policySet?.version ?? 'none',
    domains: new LazyList(dumpDomains(policySet, domains, wallMicros)),
    errors,
  });
  return jsonText(dumped);
}

function* dumpDomains(
  policySet: PolicySet | undefined,
  domains: readonly DomainStatus[],
  wallMicros: number,
): Generator<LazyObject> {
  for (const { domain, state, files } of domains) {
    const policy = policySet?.domains.get(domain);
    // Absent when the domain is not in force.
    const dumped = policy === undefined ? undefined : dumpPolicy(policy, wallMicros);
    yield new LazyObject({ domain, state, files, policy: dumped });
  }
}

function dumpPolicy(policy: CompiledPolicy, wallMicros: number): LazyObject {
  return new LazyObject({
    phase: dumpPhase(policy.phase, wallMicros),
    // What `unit` and `requests_per_unit` mean where a rule does not say, and in limit overrides.
    algorithm: policy.overrideAlgorithm,
    // null, here and in two of the next: the environment decides.
    response_headers: headersOf(policy.responseHeaders),
    denied_response: deniedOf(policy.deniedResponse),
    decision_metadata: policy.decisionMetadata ?? null,
    on_store_failure: policy.onStoreFailure,
    on_unmatched: policy.root.onUnmatched,
    derive: new LazyList(dumpSteps(policy)),
    rules: new LazyList(dumpRules(policy, wallMicros)),
  });
}

function* dumpSteps(policy: CompiledPolicy): Generator<LazyObject> {
  for (const step of policy.steps) {
    const rules = step.kind === 'rules' ? new LazyList(dumpDeriveRules(step)) : undefined;
    yield new LazyObject({ step: describeStep(step), rules });
  }
}

function* dumpDeriveRules({ rules, sources }: Extract<DeriveStep, { kind: 'rules' }>): Generator<string> {
  for (const rule of rules) yield describeDeriveRule(rule, sources);
}

function* dumpRules(policy: CompiledPolicy, wallMicros: number): Generator<object | undefined> {
  const nodes = new Map<Rule, PolicyNode>();
  for (const _slice of ruleNodes(policy, nodes)) yield undefined;
  for (const rule of policy.rules) {
    const node = nodes.get(rule);
    yield { ...dumpRule(rule, fullKey(policy, rule, node), node, wallMicros), ...matchersOf(node) };
  }
}

function matchersOf(node: PolicyNode | undefined): Pick<DumpedRule, 'matchers'> {
  const matchers = (node?.way() ?? []).flatMap(({ key, matcher }) =>
    matcher === undefined ? [] : [{ key, [matcherField(matcher)]: matcher.items }],
  );
  return matchers.length === 0 ? {} : { matchers };
}

function dumpRule(rule: Rule, key: string, node: PolicyNode | undefined, wallMicros: number): DumpedRule {
  return {
    full_key: key,
    path: rule.path,
    keys: node?.way().map(({ key: entry }) => entry) ?? [],
    name: rule.name,
    limit: dumpRate(rule.rate),
    phase: dumpPhase(rule.phase, wallMicros),
    shadow_mode: rule.shadowMode,
    quota_mode: rule.quotaMode,
    enforce_percent: rule.enforcePercent,
    candidate: rule.candidate,
    replaces: rule.replaces,
    on_store_failure: rule.onStoreFailure,
    response_headers: headersOf(rule.responseHeaders),
    denied_response: deniedOf(rule.deniedResponse),
    metadata: rule.metadata ?? null,
    stat_name: rule.statName === '' ? null : rule.statName,
  };
}

function dumpRate(rate: Rate | undefined): unknown {
  if (rate === undefined) return { unlimited: true };
  const debt = rate.maxDebt === 0 ? {} : { allow_debt: true, max_debt: rate.maxDebt };
  if (rate.kind === 'window') {
    return {
      unit: rate.unit,
      requests_per_unit: rate.requestsPerUnit,
      ...(rate.multiplier !== 1 && { unit_multiplier: rate.multiplier }),
      ...(rate.calendar !== undefined && { calendar: rate.calendar.timeZone }),
      ...debt,
    };
  }
  const { maxTokens, tokensPerFill, fillIntervalMicros } = rate;
  return {
    token_bucket: {
      max_tokens: maxTokens,
      tokens_per_fill: tokensPerFill,
      fill_interval: describeMicros(fillIntervalMicros),
    },
    ...debt,
  };
}

function dumpPhase(schedule: PhaseSchedule, wallMicros: number): DumpedPhase {
  const { gracePeriodAtMicros, activeAtMicros } = schedule;
  return {
    now: phaseAt(schedule, wallMicros),
    ...(Number.isFinite(gracePeriodAtMicros) && { grace_period: timeText(gracePeriodAtMicros) }),
    ...(Number.isFinite(activeAtMicros) && { active: timeText(activeAtMicros) }),
  };
}

function timeText(micros: number): string {
  return new Date(Math.floor(micros / 1000)).toISOString();
}

function headersOf(headers: ResponseHeaders | undefined): readonly string[] | null {
  return headers === undefined ? null : headerFamilies(headers);
}

function deniedOf(denied: DeniedResponse | undefined): DumpedDenied | null {
  if (denied === undefined) return null;
  if (denied.preset === 'problem+json') return denied.preset;
  return { body: denied.body, ...(denied.contentType !== '' && { content_type: denied.contentType }) };
}
