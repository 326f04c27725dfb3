import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import { describeStandard } from '../../policy/plans/planned-rules.js';
import type { DomainStatus } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { limitsBefore, type Rule } from '../../policy/rule.js';
import { matcherField } from '../../policy/values/value-matcher.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import type { ConfigProblem } from '../yaml/config-problem.js';
import { fullKey, placedRules } from './dump.js';
import { describeDeriveRule, describeStep } from './dump-tree.js';
import { deniedJson, headersJson, phaseJson, ruleJson } from './rule-json.js';

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
  const before = limitsBefore(node.rules, node.rules.indexOf(rule));
  return {
    /** Key of the rule in the plain form of `/rlconfig`. */
    full_key: fullKey(policy, rule, node),
    /** Keys of the entries that lead to the rule, from the first level on. */
    keys: node.path().map(({ key }) => key),
    ...ruleJson(rule, wallMicros),
    /** Effect of the default plan besides numbers: `unlimited`, `blocked` or `phase monitoring`. */
    without_row: describeStandard(rule, node, policy.plans) || null,
    /** Names of the limits that pay before this limit, in a chain. */
    ...(before.length > 0 && { pays_after: before.map(({ name }) => name) }),
    /** Name of the rule in the statistics; null if the name contains values from requests. */
    stat_name: rule.statName === '' ? null : rule.statName,
    ...matchersOf(node),
  };
}
