import type { Rate } from '../limiter/rate.js';
import {
  type DeniedResponse,
  type PhaseSchedule,
  phaseAt,
  type ResponseHeaders,
  type Rule,
} from '../limiter/rule.js';
import { CompiledPolicy } from './compiled-policy.js';
import type { ConfigProblem } from './config-problem.js';
import { describeMicros, headerFamilies } from './describe.js';
import { fullKeys, ruleNodes } from './dump.js';
import { describeDeriveRule, describeStep } from './dump-tree.js';
import type { DomainPolicy, DomainStatus, PolicySet } from './policy.js';
import type { PolicyNode } from './policy-node.js';
import { matcherField } from './value-matcher.js';

/**
 * The whole configuration for machines, for `/rlconfig?format=json`: how every domain stands, and of those in force all rules.
 * `wallMicros` says which phases are in force. Settings have the names of the policy file; secrets are redacted.
 */
export interface PolicyDump {
  /** `none` while nothing was ever loaded. */
  readonly version: string;
  readonly domains: readonly DumpedDomain[];
  /** What is wrong with the files, or resources, now; empty when nothing is. */
  readonly errors: readonly ConfigProblem[];
}

interface DumpedDomain extends DomainStatus {
  /** Absent when the domain is not in force. */
  readonly policy?: {
    readonly phase: DumpedPhase;
    /** What `unit` and `requests_per_unit` mean where a rule does not say, and in limit overrides. */
    readonly algorithm: string;
    /** null: the environment decides. */
    readonly response_headers: readonly string[] | null;
    readonly denied_response: DumpedDenied | null;
    /** null: the environment decides. */
    readonly decision_metadata: boolean | null;
    readonly on_store_failure: string;
    readonly derive: readonly { readonly step: string; readonly rules?: readonly string[] }[];
    readonly rules: readonly DumpedRule[];
  };
}

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

/** See {@link PolicyDump}. */
export function dumpJson(
  policySet: PolicySet | undefined,
  domains: readonly DomainStatus[],
  errors: readonly ConfigProblem[],
  wallMicros: number,
): PolicyDump {
  return {
    version: policySet?.version ?? 'none',
    domains: domains.map(({ domain, state, files }) => {
      const policy = policySet?.domains.get(domain);
      const status = { domain, state, files };
      return policy === undefined ? status : { ...status, policy: dumpPolicy(policy, wallMicros) };
    }),
    errors,
  };
}

function dumpPolicy(policy: DomainPolicy, wallMicros: number): NonNullable<DumpedDomain['policy']> {
  const compiled = policy instanceof CompiledPolicy ? policy : undefined;
  const keys = compiled === undefined ? new Map<Rule, string>() : fullKeys(compiled);
  const nodes = compiled === undefined ? new Map<Rule, PolicyNode>() : ruleNodes(compiled);
  return {
    phase: dumpPhase(policy.phase, wallMicros),
    algorithm: policy.overrideAlgorithm,
    response_headers: headersOf(policy.responseHeaders),
    denied_response: deniedOf(policy.deniedResponse),
    decision_metadata: policy.decisionMetadata ?? null,
    on_store_failure: policy.onStoreFailure,
    derive: (compiled?.steps ?? []).map((step) => ({
      step: describeStep(step),
      ...(step.kind === 'rules' && {
        rules: step.rules.map((rule) => describeDeriveRule(rule, step.sources)),
      }),
    })),
    rules: policy.rules.map((rule) => ({
      ...dumpRule(rule, keys.get(rule) ?? '', wallMicros),
      ...matchersOf(nodes.get(rule)),
    })),
  };
}

function matchersOf(node: PolicyNode | undefined): Pick<DumpedRule, 'matchers'> {
  const matchers = (node?.way() ?? []).flatMap(({ key, matcher }) =>
    matcher === undefined ? [] : [{ key, [matcherField(matcher)]: matcher.items }],
  );
  return matchers.length === 0 ? {} : { matchers };
}

function dumpRule(rule: Rule, fullKey: string, wallMicros: number): DumpedRule {
  return {
    full_key: fullKey,
    path: rule.path,
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
