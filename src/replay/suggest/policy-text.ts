import { quotedYaml } from '../../config/yaml/quoted-yaml.js';
import { durationText, minuteText } from './coverage.js';
import { DAY_MICROS, limitComments } from './limit-comments.js';
import { literalPattern, type RouteNode } from './route-tree.js';
import { grouped, type SpokenRate } from './spoken-rates.js';
import type { RouteLimit, Suggestion, SuggestOptions } from './suggest.js';

/** Columns of a line of comments. */
const COLUMNS = 110;

const PLAIN = /^[A-Za-z_][\w-]*$/;
/** Words that are not strings in YAML 1.1. */
const NOT_A_STRING = /^(?:y|yes|n|no|on|off|true|false|null)$/i;

const FILL_INTERVALS = { second: '1s', minute: '1m', hour: '1h' } as const;

/**
 * Returns the policy file of a suggestion for a domain. Its phase is monitoring, so it never denies a request.
 * `warnings` are probable reasons for wrong limits, as sentences.
 */
export function policyText(
  domain: string,
  suggestion: Suggestion,
  options: SuggestOptions,
  warnings: readonly string[] = [],
): string {
  const nodes = suggestion.tree.root.children.map((node) => nodeText(node, '  ', suggestion, options));
  return [
    ...comment([...headerText(suggestion, options), ...warnings.map((one) => `Warning: ${one}`)], ''),
    `domain: ${yamlText(domain)}`,
    'phase: monitoring',
    'descriptors:',
    ...nodes,
    '',
  ].join('\n');
}

function headerText(
  { limits, withoutCaller, clockSteps }: Suggestion,
  { by, share, headroom }: SuggestOptions,
): readonly string[] {
  const covered = [...limits.keys()].map(({ coverage }) => coverage);
  const first = Math.min(...covered.map(({ firstMicros }) => firstMicros));
  const last = Math.max(...covered.map(({ lastMicros }) => lastMicros));
  return [
    `Suggested by weir from a log of ${durationText(last - first)}, ${minuteText(first)} to ${minuteText(last)}.`,
    `Each limit would have passed all requests of ${percent(share)} of the well-behaved callers ` +
      `(${yamlText(by)}), and adds ${percent(headroom)} of headroom.`,
    'Requests that the log shows as denied count as demand.',
    'The phase is monitoring, so nothing is denied. Before you change the phase, check the outliers.',
    ...(withoutCaller > 0
      ? [`${grouped(withoutCaller)} descriptors without the entry ${yamlText(by)} were not counted.`]
      : []),
    ...(clockSteps > 0 ? [`The clock of the log was set back ${grouped(clockSteps)} times.`] : []),
  ];
}

function nodeText(node: RouteNode, indent: string, suggestion: Suggestion, options: SuggestOptions): string {
  const { key, value, children } = node;
  const limit = suggestion.limits.get(node);
  const lines: string[] = [];
  if (limit !== undefined) lines.push(...comment(limitComments(limit, suggestion.table, options), indent));
  else if (children.length === 0)
    lines.push(
      ...comment([`No limit, because these descriptors have no entry ${yamlText(options.by)}.`], indent),
    );
  lines.push(`${indent}- key: ${yamlText(key)}`);
  if (value !== undefined) lines.push(`${indent}  ${valueText(value)}`);
  if (limit !== undefined) lines.push(...limitText(limit, options.daily, `${indent}  `));
  if (children.length > 0) lines.push(`${indent}  descriptors:`);
  return [...lines, ...children.map((child) => nodeText(child, `${indent}    `, suggestion, options))].join(
    '\n',
  );
}

function limitText(
  { rate, burst, daily, node }: RouteLimit,
  withDaily: boolean,
  indent: string,
): readonly string[] {
  const bucket = bucketText(rate, burst);
  if (!withDaily || node.coverage.spanMicros < DAY_MICROS) return [`${indent}rate_limit: { ${bucket} }`];
  return [
    `${indent}rate_limits:`,
    `${indent}  - { name: rate, ${bucket} }`,
    `${indent}  - { name: daily, unit: day, requests_per_unit: ${daily} }`,
  ];
}

function bucketText({ count, unit }: SpokenRate, burst: number): string {
  const fill = `tokens_per_fill: ${count}, fill_interval: ${FILL_INTERVALS[unit]}`;
  return `token_bucket: { max_tokens: ${burst}, ${fill} }`;
}

/** Returns sentences as comments, each on separate lines. */
function comment(sentences: readonly string[], indent: string): readonly string[] {
  return sentences.flatMap((sentence) => {
    const lines: string[] = [];
    let line = `${indent}#`;
    for (const word of sentence.split(' ')) {
      if (line.length + word.length >= COLUMNS && line.length > indent.length + 3) {
        lines.push(line);
        line = `${indent}#  `;
      }
      line += ` ${word}`;
    }
    return [...lines, line];
  });
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(6))}%`;
}

/** Returns the field of a node that matches exactly this value. In `value`, "*" would match any characters. */
function valueText(value: string): string {
  const isPattern = value.includes('*');
  return isPattern ? `value_regex: ${yamlText(literalPattern(value))}` : `value: ${yamlText(value)}`;
}

/** Returns a key or value as YAML: in quotes, unless it is a plain word. */
function yamlText(text: string): string {
  return PLAIN.test(text) && !NOT_A_STRING.test(text) ? text : quotedYaml(text);
}
