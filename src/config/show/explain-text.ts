import type { Entry } from '../../limiter/entry.js';
import {
  describeDecisionMetadata,
  describeDenied,
  describeHeaders,
  describePhase,
  describeRule,
} from '../../policy/describe.js';
import { type CustomerPlan, describeCustomerPlan } from '../../policy/plans/plan-nodes.js';
import type { Rule } from '../../policy/rule.js';
import { printableLine, shellText } from '../../runtime/printable.js';
import { deniedJson, headersJson, ruleJson } from './dump-tree.js';
import type { BucketPlace, ExplainedRule, Explanation, Origin } from './explain.js';

/**
 * Returns the explanation as text for a terminal. `placeOf` returns where the bucket of a rule is in Redis, if it has
 * one.
 */
export function renderExplanation(
  explanation: Explanation,
  wallMicros: number,
  placeOf: (rule: ExplainedRule) => BucketPlace | undefined = () => undefined,
): string {
  const lines = [
    `domain:     ${shellText(explanation.domain)}${explanation.file === null ? '' : ` (${explanation.file})`}`,
    `descriptor: ${renderEntries(explanation.descriptor)}`,
  ];
  for (const step of explanation.derive)
    lines.push(`${step.path}:  ${step.step}`, `            ${step.outcome}`);
  if (explanation.derive.some((step) => step.applied)) {
    lines.push(`matched as: ${renderEntries(explanation.matched_as)}`);
  }
  explanation.levels.forEach((level, i) => {
    lines.push(`level ${i + 1}:    ${renderEntries([level.entry])}`);
    if (level.tried.length === 0) lines.push('            no rule uses this key at this level');
    for (const { node, matched, why } of level.tried)
      lines.push(`          ${matched ? '>' : ' '} ${node}: ${why}`);
  });
  lines.push(`result:     ${explanation.result}`);
  for (const sentence of explanation.to_match) lines.push(`to match:   ${sentence}`);
  if (explanation.plan !== undefined) {
    lines.push(`plan:       ${describeCustomerPlan(explanation.plan, wallMicros)}`);
  }
  for (const explained of explanation.rules) {
    const { rule, key, statName } = explained;
    lines.push(...ruleLines(rule, wallMicros), ...answerLines(explained.answer));
    if (rule.rate !== undefined) lines.push(`bucket:     ${key}`);
    lines.push(`statistics: ${statName}`);
    lines.push(...placeLines(placeOf(explained)));
  }
  if (explanation.overrides !== null) {
    lines.push(
      `overrides:  a limit in the request is applied as a ${explanation.overrides.replace('_', ' ')}, instead of the ` +
        "policy's limits",
      `decision metadata: ${describeDecisionMetadata(explanation.decision_metadata ?? undefined)}`,
    );
  }
  // Names and values from the command line and the policy may contain control characters.
  return `${lines.map(printableLine).join('\n')}\n`;
}

function placeLines(place: BucketPlace | undefined): readonly string[] {
  if (place === undefined) return [];
  const { key, slot, node } = place;
  return [
    `Redis key:  ${key}`,
    `slot:       ${slot} of a Redis Cluster`,
    ...(node === undefined ? [] : [`node:       ${node}`]),
  ];
}

function ruleLines(rule: Rule, wallMicros: number): readonly string[] {
  const text = describeRule(rule, wallMicros);
  const place = rule.statSuffix === '' ? '' : `${rule.path}: `;
  const lines = [`rule:       ${place}${text}`, `phase:      ${describePhase(rule.phase, wallMicros)}`];
  if (rule.rate?.reportedLimit === 0 && rule.onOver === undefined)
    lines.push('note:       a limit of 0 denies every request, however long the caller waits');
  return lines;
}

function answerLines(answer: ExplainedRule['answer']): readonly string[] {
  if (answer === undefined) return [];
  const { responseHeaders: headers, requestHeaders: upstream, deniedResponse: denied } = answer;
  const of = (from: Origin): string => (from === 'environment' ? '' : ` (set in the ${from})`);
  return [
    `headers:    ${describeHeaders(headers.value)}${of(headers.from)}`,
    ...(upstream.value === undefined
      ? []
      : [`upstream:   ${describeHeaders(upstream.value)}${of(upstream.from)}`]),
    ...(denied === undefined
      ? []
      : [`denied:     response ${describeDenied(denied.value)}${of(denied.from)}`]),
  ];
}

function renderEntries(entries: readonly Entry[]): string {
  return (
    entries.map(({ key, value }) => (value === '' ? key : `${key}=${value}`)).join(', ') || '(no entries)'
  );
}

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
