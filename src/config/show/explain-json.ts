import type { CustomerPlan } from '../../policy/plans/customer-plan.js';
import type { BucketPlace, ExplainedRule, Explanation, Origin } from './explain.js';
import { deniedJson, headersJson, type RuleJson, ruleJson } from './rule-json.js';

/** Output of `weir explain --json`; see {@link Explanation}. */
export interface ExplanationJson extends Omit<Explanation, 'rules' | 'plan'> {
  readonly rules: readonly ExplainedRuleJson[];
  /** The row of `plans`; null if the limits do not depend on it. */
  readonly plan: ExplainedPlanJson | null;
}

/** The row of `plans` that selects the values of a limit. */
interface ExplainedPlanJson {
  /** null if the customer has no row. */
  readonly line: number | null;
  /** null if the rows are the plans of the policy. */
  readonly file: string | null;
  /** Name of the plan in `define`; null without one. */
  readonly plan: string | null;
  /** When the rows were read, RFC 3339. */
  readonly read_at: string;
}

/** A rule. `response_headers`, `request_headers` and `denied_response` are the effective values. */
interface ExplainedRuleJson extends RuleJson {
  /** Origin of `response_headers`; null for a rule without a limit. */
  readonly response_headers_of: Origin | null;
  /** Origin of `request_headers`, in the same way. */
  readonly request_headers_of: Origin | null;
  /** Origin of `denied_response`; null if no denial has one. */
  readonly denied_response_of: 'rule' | 'file' | null;
  /** null without a limit. */
  readonly bucket: string | null;
  /** null without a limit. */
  readonly redis_key: string | null;
  /** null without a limit. */
  readonly redis_slot: number | null;
  /** null if it was not looked up, or is unknown. */
  readonly redis_node: string | null;
  readonly statistics: string;
}

/**
 * Returns the explanation as JSON. `placeOf` returns where the bucket of a rule is in Redis, if it has one.
 * `wallMicros` is the time of the explanation.
 */
export function explanationJson(
  explanation: Explanation,
  wallMicros: number,
  placeOf: (rule: ExplainedRule) => BucketPlace | undefined,
): ExplanationJson {
  const { rules, plan } = explanation;
  return {
    ...explanation,
    rules: rules.map((rule) => explainedRuleJson(rule, wallMicros, placeOf(rule))),
    plan: plan === undefined ? null : planJson(plan),
  };
}

function planJson({ line, file, plan, readAtMillis }: CustomerPlan): ExplainedPlanJson {
  return {
    line: line ?? null,
    file: file === '' ? null : file,
    plan: plan ?? null,
    read_at: new Date(readAtMillis).toISOString(),
  };
}

function explainedRuleJson(
  { rule, key, statName, answer }: ExplainedRule,
  wallMicros: number,
  place: BucketPlace | undefined,
): ExplainedRuleJson {
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
