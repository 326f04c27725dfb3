import type { Entry } from '../../limiter/entry.js';
import type { CustomerPlan } from '../../policy/plans/customer-plan.js';
import type { BucketPlace, ExplainedRule, Explanation, Origin } from './explain.js';
import type { TriedNode } from './explain-level.js';
import { deniedJson, type RuleJson, ruleJson } from './rule-json.js';

/**
 * Output of `weir explain --json`. Programs read it, so fields are added but never renamed or removed. The manual
 * describes each field (docs/reference/explain-json.md).
 */
export interface ExplanationJson {
  readonly domain: string;
  /** null if the domain is unknown. */
  readonly file: string | null;
  /** The entries as given. */
  readonly descriptor: readonly Entry[];
  /** The items of `derive`, in order. */
  readonly derive: readonly {
    /** Path of the item, such as `derive[0]`. */
    readonly path: string;
    readonly step: string;
    readonly applied: boolean;
    readonly outcome: string;
  }[];
  /** The entries that the tree is matched against. */
  readonly matched_as: readonly Entry[];
  readonly levels: readonly {
    readonly entry: Entry;
    readonly tried: readonly TriedNode[];
    /** null if no node matched, which ends the search. */
    readonly matched: string | null;
  }[];
  readonly result: string;
  /** Changes that would make a rule apply; empty if one does. */
  readonly to_match: readonly string[];
  readonly rules: readonly ExplainedRuleJson[];
  /** The row of `plans`; null if the limits do not depend on it. */
  readonly plan: ExplainedPlanJson | null;
  /** `algorithm` of limit overrides; null if the domain is unknown. */
  readonly overrides: string | null;
  /** null if the environment decides, or the domain is unknown. */
  readonly decision_metadata: boolean | null;
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
  const { domain, file, given, steps, entries, levels, result, rules, plan, settings, toMatch } = explanation;
  return {
    domain,
    file: file ?? null,
    descriptor: entriesJson(given),
    derive: steps.map(({ path, step, applied, outcome }) => ({ path, step, applied, outcome })),
    matched_as: entriesJson(entries),
    levels: levels.map(({ entry: { key, value }, tried, matched }) => ({
      entry: { key, value },
      tried: tried.map(({ node, matched: fits, why }) => ({ node, matched: fits, why })),
      matched: matched ?? null,
    })),
    result,
    to_match: toMatch,
    rules: rules.map((rule) => explainedRuleJson(rule, wallMicros, placeOf)),
    plan: plan === undefined ? null : planJson(plan),
    overrides: settings?.overrideAlgorithm ?? null,
    decision_metadata: settings?.decisionMetadata ?? null,
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
  explained: ExplainedRule,
  wallMicros: number,
  placeOf: (rule: ExplainedRule) => BucketPlace | undefined,
): ExplainedRuleJson {
  const { rule, key, statName, answer } = explained;
  const place = placeOf(explained);
  const deniedOf = answer?.deniedResponse?.from;
  return {
    ...ruleJson(rule, wallMicros),
    response_headers: answer?.responseHeaders.families ?? null,
    response_headers_of: answer?.responseHeaders.from ?? null,
    request_headers: answer?.requestHeaders.families ?? null,
    request_headers_of: answer?.requestHeaders.from ?? null,
    denied_response: deniedJson(answer?.deniedResponse?.value),
    denied_response_of: deniedOf === 'rule' || deniedOf === 'file' ? deniedOf : null,
    bucket: rule.rate === undefined ? null : key,
    redis_key: place?.key ?? null,
    redis_slot: place?.slot ?? null,
    redis_node: place?.node ?? null,
    statistics: statName,
  };
}

function entriesJson(entries: readonly Entry[]): readonly Entry[] {
  return entries.map(({ key, value }) => ({ key, value }));
}
