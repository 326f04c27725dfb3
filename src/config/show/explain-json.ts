import type { CustomerPlan } from '../../policy/plans/planned-nodes.js';
import type { BucketPlace, ExplainedRule, Explanation } from './explain.js';
import { deniedJson, headersJson, ruleJson } from './rule-json.js';

/**
 * Returns the explanation as `weir explain --json` prints it (docs/reference/explain-json.md). `placeOf` returns where
 * the bucket of a rule is in Redis, if it has one. `wallMicros` is the time of the explanation.
 */
export function explanationJson(
  explanation: Explanation,
  wallMicros: number,
  placeOf: (rule: ExplainedRule) => BucketPlace | undefined,
) {
  const { rules, plan } = explanation;
  return {
    ...explanation,
    rules: rules.map((rule) => explainedRuleJson(rule, wallMicros, placeOf(rule))),
    plan: plan === undefined ? null : planJson(plan),
  };
}

/** Returns the row of `plans` that selects the values of a limit. */
function planJson({ line, file, plan, readAtMillis }: CustomerPlan) {
  return {
    line: line ?? null,
    file: file === '' ? null : file,
    plan: plan ?? null,
    read_at: new Date(readAtMillis).toISOString(),
  };
}

/** Returns a rule. The settings of answers are the effective values, each with its origin. */
function explainedRuleJson(
  { rule, key, statName, answer }: ExplainedRule,
  wallMicros: number,
  place: BucketPlace | undefined,
) {
  const deniedOf = answer?.deniedResponse?.from ?? 'environment';
  return {
    ...ruleJson(rule, wallMicros),
    response_headers: headersJson(answer?.responseHeaders.value),
    response_headers_of: answer?.responseHeaders.from ?? null,
    request_headers: headersJson(answer?.requestHeaders.value),
    request_headers_of: answer?.requestHeaders.from ?? null,
    denied_response: deniedJson(answer?.deniedResponse?.value),
    denied_response_of: deniedOf === 'environment' ? null : deniedOf,
    bucket: rule.rate === undefined ? null : key,
    redis_key: place?.key ?? null,
    redis_slot: place?.slot ?? null,
    redis_node: place?.node ?? null,
    statistics: statName,
  };
}
