import { describeFailurePolicy } from '../../limiter/failure-policy.js';
import type { TimedRate } from '../../limiter/rate.js';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import type { DeriveRule } from '../../policy/derive/rule-index.js';
import {
  describeDecisionMetadata,
  describeDenied,
  describeHeaders,
  describeMicros,
  describePhase,
  describePlan,
  describePlans,
  describeRequestHeaders,
  describeRule,
  headerFamilies,
  retryAfterText,
} from '../../policy/describe.js';
import { type LeaseSpec, leaseRefusal } from '../../policy/leases.js';
import { columnNames } from '../../policy/plans/plan-rate.js';
import { describeStandard } from '../../policy/plans/plan-rules.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { keptText, type PrioritySpec } from '../../policy/priorities.js';
import { isCredential, redacted } from '../../policy/redact.js';
import {
  type DeniedResponse,
  type HeaderFamilies,
  HOLD_SOURCES,
  type HoldSpec,
  type OnOver,
  type PhaseSchedule,
  phaseAt,
  type Rule,
} from '../../policy/rule.js';
import { describeMatcher } from '../../policy/values/value-matcher.js';
import { plural } from '../../runtime/texts.js';

/**
 * Returns the whole configuration as text for `/rlconfig?format=tree`: every domain with its settings, derive steps and
 * tree. Key tables appear only as counts. `wallMicros` decides which phases are current.
 */
export function dumpTree(policySet: PolicySet, wallMicros: number): string {
  const domains = [...policySet.domains.values()].map((policy) => dumpDomain(policy, wallMicros));
  return `policy version ${policySet.version}\n${domains.length === 0 ? 'no domains\n' : domains.join('')}`;
}

function dumpDomain(policy: CompiledPolicy, wallMicros: number): string {
  let text = `
domain ${policy.domain} (${policy.file})
  phase: ${describePhase(policy.phase, wallMicros)}
  algorithm: ${policy.overrideAlgorithm}
  response headers: ${describeHeaders(policy.responseHeaders)}
  request headers: ${describeRequestHeaders(policy.requestHeaders)}
  on store failure: ${describeFailurePolicy(policy.onStoreFailure)}
  on unmatched: ${policy.root.onUnmatched}
  denied: ${describeDenied(policy.deniedResponse)}
  decision metadata: ${describeDecisionMetadata(policy.decisionMetadata)}
`;
  for (const [i, step] of policy.steps.entries()) {
    text += `  derive[${i}]: ${describeStep(step)}\n`;
    if (step.kind !== 'rules') continue;
    for (const rule of step.rules) text += `    ${describeDeriveRule(rule, step.sources)}\n`;
  }
  if (policy.plans !== undefined) {
    text += `  plans: ${describePlans(policy.plans)}\n`;
    for (const plan of policy.plans.plans) text += `    ${describePlan(plan)}\n`;
  }
  return `${text}  descriptors:\n${dumpNodes(policy.root, policy.plans, '    ', wallMicros)}`;
}

function dumpNodes(
  parent: PolicyNode,
  plans: PlanTable | undefined,
  indent: string,
  wallMicros: number,
): string {
  let text = '';
  for (const node of parent.children()) {
    const shared = node.shareThreshold ? ' (one bucket for all)' : '';
    const texts = node.rules.map((rule) => {
      const standard = describeStandard(rule, node, plans);
      return `${describeRule(rule, wallMicros)}${standard && `; ${standard} without a row`}`;
    });
    const rule = texts.length === 1 ? `: ${texts[0]}` : '';
    const unmatched = node.onUnmatched === parent.onUnmatched ? '' : ` (on unmatched: ${node.onUnmatched})`;
    text += `${indent}${node.label}${shared}${unmatched}${rule}\n`;
    if (node.matcher !== undefined && node.matcher.items.length > 1) {
      text += `${indent}  matches ${describeMatcher(node.matcher)}\n`;
    }
    if (texts.length > 1) for (const each of texts) text += `${indent}  - ${each}\n`;
    text += dumpNodes(node, plans, `${indent}  `, wallMicros);
  }
  return text;
}

/** Formats a step: `tenant from api_key: table of 3 API keys`. */
export function describeStep(step: DeriveStep): string {
  if (step.kind === 'table')
    return `${step.entry} from ${step.source}: table of ${plural(step.size, 'API key')}`;
  return `${step.entry} from ${step.sources.join(', ')}: ${plural(step.rules.length, 'rule')}`;
}

/** Formats a rule: `method=GET path=/open/{v4,v5}/user-chats -> user-chats`. */
export function describeDeriveRule(rule: DeriveRule, sources: readonly string[]): string {
  const conditions = rule.conditions.map((condition, i) => {
    if (condition === undefined) return '';
    const source = sources[i] as string;
    const text = typeof condition === 'string' ? condition : condition.source;
    return `${source}=${isCredential(source) ? redacted(text) : text}`;
  });
  return `${conditions.filter((text) => text !== '').join(' ') || 'always'} -> ${rule.value}`;
}

/**
 * Returns a rule as in `/rlconfig?format=json` and `weir explain --json`, with the names of the policy file. Settings
 * that the file or the environment decides are null. `wallMicros` decides which phase is current.
 */
export function ruleJson(rule: Rule, wallMicros: number) {
  return {
    /** Path in the tree, such as `tenant/resource_group=user-chats`. */
    path: rule.path,
    name: rule.name,
    limit: limitJson(rule.shared ?? rule),
    /** The fields of the limit that come from a plan, each with the name of the value. */
    plan_values: rule.plan === undefined ? null : Object.fromEntries(columnNames(rule.plan)),
    phase: phaseJson(rule.phase, wallMicros),
    shadow_mode: rule.shadowMode,
    quota_mode: rule.quotaMode,
    enforce_percent: rule.enforcePercent,
    replaces: rule.replaces,
    on_store_failure: rule.onStoreFailure,
    response_headers: headersJson(rule.responseHeaders),
    request_headers: headersJson(rule.requestHeaders),
    denied_response: deniedJson(rule.deniedResponse),
    priorities: rule.priorities === undefined ? null : prioritiesJson(rule.priorities),
    /** Class of the caller, and the part of the limit that it can use; null for the limit as a whole. */
    class:
      rule.shared === undefined ? null : { name: rule.className, limit: rule.rate?.reportedLimit ?? null },
    lease: rule.lease === undefined ? null : leaseJson(rule, rule.lease),
    on_over: rule.onOver === undefined ? null : onOverJson(rule.onOver),
    // biome-ignore lint/suspicious/noThenProperty: the name of the key in policies
    then: rule.nextLimit === '' ? null : rule.nextLimit,
    metadata: rule.metadata ?? null,
  };
}

function limitJson({ rate, hold }: Pick<Rule, 'rate' | 'hold'>): unknown {
  if (rate === undefined) return { unlimited: true };
  if (rate.kind === 'concurrency')
    return { concurrency: { max: rate.max, ...expiryJson(hold), ...retryJson(hold) } };
  const debt = hold === undefined ? debtJson(rate) : { hold: holdJson(hold), max_debt: rate.maxDebt };
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

function debtJson({ maxDebt }: TimedRate): object {
  return maxDebt === 0 ? {} : { allow_debt: true, max_debt: maxDebt };
}

function holdJson(hold: HoldSpec): object {
  const { amount, unknown, pair } = hold;
  const estimate = amount === undefined ? { from: HOLD_SOURCES[0] } : { amount };
  return { ...estimate, ...expiryJson(hold), unknown, pair };
}

function expiryJson(hold: HoldSpec | undefined): object {
  return hold === undefined ? {} : { expires_after: describeMicros(hold.expiresAfterMillis * 1000) };
}

function retryJson(hold: HoldSpec | undefined): object {
  return hold?.retryAfterSeconds === undefined ? {} : { retry_after: retryAfterText(hold) };
}

/** Returns the current phase, and the start times of scheduled phases. */
export function phaseJson(schedule: PhaseSchedule, wallMicros: number): object {
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

/** The families as `response_headers` and `request_headers` list them; null if they are unset. */
export function headersJson(headers: HeaderFamilies | undefined): readonly string[] | null {
  return headers === undefined ? null : headerFamilies(headers);
}

/** The value of `denied_response`; null if it is unset. */
export function deniedJson(denied: DeniedResponse | undefined): string | object | null {
  if (denied === undefined) return null;
  if (denied.preset === 'problem+json') return denied.preset;
  return { body: denied.body, ...(denied.contentType !== '' && { content_type: denied.contentType }) };
}

function prioritiesJson({ by, classes, unknown }: PrioritySpec): object {
  const keep = classes.map((one) => [one.name, one.isShare ? keptText(one) : one.keep]);
  return { by, keep: Object.fromEntries(keep), unknown };
}

/** Returns `lease`, and why the limit does not lease, if it does not. */
function leaseJson(rule: Rule, { forMicros, max, exact }: LeaseSpec): object {
  const unused = rule.rate?.lease === undefined && { refused: leaseRefusal(rule) };
  return { for: describeMicros(forMicros), max, exact, ...unused };
}

function onOverJson({ requestHeaders, metadata }: OnOver): object {
  return {
    allow: true,
    ...(requestHeaders.length > 0 && {
      request_headers: requestHeaders.map(({ key, value }) => ({ [key]: value })),
    }),
    ...(metadata !== undefined && { metadata }),
  };
}
