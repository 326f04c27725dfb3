import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import {
  describeLimit,
  describeOptions,
  describePlan,
  describePlans,
  describePlanValues,
} from '../../policy/describe.js';
import { policyStatName } from '../../policy/names/stat-name.js';
import { describeStandard } from '../../policy/plans/plan-rules.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { DomainStatus } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { limitsBefore, type Rule } from '../../policy/rule.js';
import { inFileOrder } from '../../policy/spec.js';
import { matcherField } from '../../policy/values/value-matcher.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import type { ConfigProblem } from '../yaml/config-problem.js';
import {
  deniedJson,
  describeDeriveRule,
  describeStep,
  dumpTree,
  headersJson,
  phaseJson,
  ruleJson,
} from './dump-tree.js';

/**
 * Returns the rules in effect as envoyproxy/ratelimit prints them on `/rlconfig`: one line each, in file order. A token
 * bucket shows its capacity, and the unit in which it fills or else UNKNOWN, as `current_limit` of an answer does.
 */
export function dump(policySet: PolicySet): string {
  let text = '';
  for (const policy of policySet.domains.values()) {
    for (const [rule, node] of placedRules(policy)) {
      const { rate, shadowMode, quotaMode } = rule;
      const key = `${fullKey(policy, rule, node)}${marksOf(rule, node, policy.plans)}`;
      text += `${key}: ${limitText(rate)}, shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}\n`;
    }
  }
  return text;
}

/** Returns what the lines of envoyproxy/ratelimit do not have: ` (then credits)`; '' without any. */
function marksOf(rule: Rule, node: PolicyNode, plans: PlanTable | undefined): string {
  const { onOver, nextLimit } = rule;
  const standard = describeStandard(rule, node, plans);
  const marks = [
    standard === '' ? '' : `${standard} without a row`,
    onOver === undefined ? '' : 'passes if over',
    nextLimit === '' ? '' : `then ${nextLimit}`,
  ].filter((mark) => mark !== '');
  return marks.length === 0 ? '' : ` (${marks.join(', ')})`;
}

/**
 * Returns the key of a rule in envoyproxy/ratelimit: domain, keys and values of the policy, joined by dots. Limits of a
 * list also have their name or position. Secrets are redacted.
 */
function fullKey(policy: CompiledPolicy, rule: Rule, node: PolicyNode): string {
  return policyStatName(policy.domain, node.path(), policy.secretKeys) + rule.statSuffix;
}

/** Yields the rules of a policy in file order, each with its node. */
function* placedRules({ root }: CompiledPolicy): Generator<readonly [Rule, PolicyNode]> {
  for (const { node } of inFileOrder(root, (one) => one.inFileOrder())) {
    for (const rule of node.rules) yield [rule, node];
  }
}

/** Returns the limit as text. The reference gives an unlimited rule the unit UNKNOWN. */
function limitText(rate: Rate | undefined): string {
  const unit = rate === undefined ? undefined : rate.reportedUnit;
  const limit = rate === undefined ? 0 : rate.reportedLimit;
  return `unit=${unit?.toUpperCase() ?? 'UNKNOWN'} requests_per_unit=${limit}`;
}

/**
 * Returns the whole configuration for `/rlconfig?format=json`: the status of every domain, and all rules of the
 * domains in effect. `wallMicros` decides which phases are current. Settings have the names of the policy file, and
 * secrets are redacted.
 *
 * @param errors current problems of the files or resources
 */
export function dumpJson(
  policySet: PolicySet | undefined,
  domains: readonly DomainStatus[],
  errors: readonly ConfigProblem[],
  wallMicros: number,
): object {
  return {
    // `none` until a configuration is loaded.
    version: policySet?.version ?? 'none',
    domains: domains.map(({ domain, state, files }) => {
      const policy = policySet?.domains.get(domain);
      // Absent if no version of the domain is in effect.
      const dumped = policy === undefined ? undefined : dumpPolicy(policy, wallMicros);
      return { domain, state, files, policy: dumped };
    }),
    errors,
  };
}

function dumpPolicy(policy: CompiledPolicy, wallMicros: number): object {
  return {
    phase: phaseJson(policy.phase, wallMicros),
    // Default algorithm of rules and of limit overrides with `unit` and `requests_per_unit`.
    algorithm: policy.overrideAlgorithm,
    // Here and in three of the following fields, null means that the environment decides.
    response_headers: headersJson(policy.responseHeaders),
    request_headers: headersJson(policy.requestHeaders),
    denied_response: deniedJson(policy.deniedResponse),
    decision_metadata: policy.decisionMetadata ?? null,
    on_store_failure: policy.onStoreFailure,
    on_unmatched: policy.root.onUnmatched,
    derive: policy.steps.map(dumpStep),
    plans: policy.plans === undefined ? null : dumpPlans(policy.plans),
    rules: Array.from(placedRules(policy), ([rule, node]) => dumpRule(rule, policy, node, wallMicros)),
  };
}

/** Returns `plans` without its rows, which may be many. */
function dumpPlans(plans: PlanTable): object {
  const { by, file, standard, maxDrop, maxDropFrom, readColumns, refused } = plans;
  return {
    by,
    from: file === '' ? null : withoutAddressSecrets(file),
    columns: readColumns ?? null,
    default: standard ?? null,
    max_drop: maxDrop,
    max_drop_from: maxDropFrom,
    define: Object.fromEntries(plans.plans.map(({ name, values }) => [name, values])),
    rows: plans.rowCount,
    refused,
    about: describePlans(plans),
    define_about: plans.plans.map(describePlan),
  };
}

function dumpStep(step: DeriveStep): object {
  const rules =
    step.kind === 'rules' ? step.rules.map((rule) => describeDeriveRule(rule, step.sources)) : undefined;
  return { step: describeStep(step), rules };
}

/** Returns the blocks or regular expressions of the nodes from the first level to a rule, if any node has some. */
function matchersOf(node: PolicyNode): object {
  const matchers = node
    .path()
    .flatMap(({ key, matcher }) =>
      matcher === undefined ? [] : [{ key, [matcherField(matcher)]: matcher.items }],
    );
  return matchers.length === 0 ? {} : { matchers };
}

function dumpRule(rule: Rule, policy: CompiledPolicy, node: PolicyNode, wallMicros: number): object {
  const before = limitsBefore(node.rules, node.rules.indexOf(rule)).map(({ name }) => name);
  const standard = describeStandard(rule, node, policy.plans);
  return {
    /** Key of the rule in the plain form of `/rlconfig`. */
    full_key: fullKey(policy, rule, node),
    /** Keys of the entries that lead to the rule, from the first level on. */
    keys: node.path().map(({ key }) => key),
    ...ruleJson(rule, wallMicros),
    /** Effect of the default plan besides numbers: `unlimited`, `blocked` or `phase monitoring`. */
    without_row: standard || null,
    /** Names of the limits that pay before this limit, in a chain. */
    ...(before.length > 0 && { pays_after: before }),
    /** Name of the rule in the statistics; null if the name contains values from requests. */
    stat_name: rule.statName === '' ? null : rule.statName,
    ...matchersOf(node),
    /** The limit and the other settings, as in `?format=tree`. */
    limit_about: [describeLimit(rule), describePlanValues(rule.plan)]
      .filter((text) => text !== '')
      .join('; '),
    options_about: [
      ...describeOptions(rule),
      ...(before.length === 0 ? [] : [`pays after ${before.map((name) => `"${name}"`).join(', ')}`]),
      ...(standard === '' ? [] : [`${standard} without a row`]),
    ],
  };
}

/** A form of `/rlconfig`. */
export type ConfigForm = 'lines' | 'tree' | 'json';

/** What `/rlconfig` shows. */
export interface ShownConfig {
  /** Undefined until a configuration is loaded. */
  readonly policySet: PolicySet | undefined;
  readonly domains: readonly DomainStatus[];
  /** Current problems of the files or resources. */
  readonly errors: readonly ConfigProblem[];
  /** Decides which phases are current. */
  readonly wallMicros: number;
  /** Worker processes that have other policies at the moment; absent or empty if all have these. */
  readonly differing?: readonly { readonly id: number; readonly policy: string }[];
}

export function rlconfigText(
  form: ConfigForm,
  { policySet, domains, errors, wallMicros, differing = [] }: ShownConfig,
): string {
  if (form === 'json') {
    const workers = differing.length > 0 && { workers_with_other_policies: differing };
    return `${JSON.stringify({ ...dumpJson(policySet, domains, errors, wallMicros), ...workers }, null, 2)}\n`;
  }
  const notes = differing.map(
    ({ id, policy }) => `# worker ${id} has other policies (version ${policy}) at the moment\n`,
  );
  if (policySet === undefined) return notes.join('');
  return (form === 'tree' ? dumpTree(policySet, wallMicros) : dump(policySet)) + notes.join('');
}
