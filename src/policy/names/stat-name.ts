import { hash } from 'node:crypto';
import type { Entry } from '../../limiter/entry.js';
import type { Rate } from '../../limiter/rate.js';
import { nodeLabel } from '../policy-node.js';
import { isSecretKey, redacted, shownValue } from '../redact.js';
import type { RuleNames, RuleSpec } from '../rule.js';
import type { NodeFields } from '../spec.js';
import { matcherName, type ValueMatcher } from '../values/value-matcher.js';
import { limitPart, shapePart, sharedMatcherPart, textPart } from './bucket-key.js';

/** Length of a {@link ruleDigest}: 128 bits in base64url. */
export const RULE_DIGEST_LENGTH = 22;

/** Returns the place of a node, below another place, as a text that no other node of the domain has. */
function placeBelow(
  above: string,
  { key, value, matcher }: Pick<NodeFields, 'key' | 'value' | 'matcher'>,
): string {
  return above + textPart(key) + (matcher === undefined ? textPart(value) : sharedMatcherPart(matcher));
}

/**
 * Returns the digest that names a rule with holds in hold tokens, the same in all replicas. `place` is the place of its
 * node; for an item of a list, followed by the part of the limit in names of buckets.
 */
export function ruleDigest(place: string): string {
  return hash('sha256', place, 'base64url').slice(0, RULE_DIGEST_LENGTH);
}

/** The fields of a level that are part of a rule's name in statistics. */
export interface StatLevel {
  readonly key: string;
  /** '' matches every value; with a `*` it is a pattern. */
  readonly value: string;
  /** Matches many values, instead of `value`. */
  readonly matcher?: ValueMatcher | undefined;
  readonly shareThreshold: boolean;
  readonly valueToMetric: boolean;
}

/** The position in the tree from which names in statistics are derived. */
export interface StatPosition {
  /** Name with values of the policy only; see {@link policyStatName}. */
  readonly statName: string;
  /**
   * Whether the names of this node's rules contain values from the request, because a level has `value_to_metric` or
   * the rule has `detailed_metric`.
   */
  readonly takesValues: boolean;
  readonly takesDetails: boolean;
}

/** Returns {@link StatPosition.statName} of `level` below another position; `shown` is its {@link shownValue}. */
function statNameBelow(above: string, level: StatLevel, shown: string): string {
  // Joined, because a template string would keep its parts alive.
  return [above, policyPart(level, shown)].join('.');
}

/**
 * Returns the name of a rule as in envoyproxy/ratelimit: the domain, then `key` or `key_value` of each level, joined by
 * dots. The values are those of the policy. Returns '' if values of the request are part of the name, because of
 * `detailed` (the rule's `detailed_metric`) or `value_to_metric`. Secrets are redacted.
 */
export function fixedStatName(
  { statName, takesValues, takesDetails }: StatPosition,
  detailed: boolean,
): string {
  return (detailed ? takesDetails : takesValues) ? '' : statName;
}

/** Returns the name with the policy's values only, as `/rlconfig` shows a rule, whatever its name in statistics. */
export function policyStatName(
  domain: string,
  levels: readonly StatLevel[],
  secretKeys: ReadonlySet<string>,
): string {
  return levels.reduce((name, level) => statNameBelow(name, level, shownIn(level, secretKeys)), domain);
}

/** Returns {@link fixedStatName} with the values of `entries`, one for each level. */
export function requestStatName(
  domain: string,
  levels: readonly StatLevel[],
  entries: readonly Entry[],
  detailed: boolean,
  secretKeys: ReadonlySet<string>,
): string {
  // A detailed name contains the "_" of an empty value, unless a level shares its threshold: the reference builds
  // the two kinds differently.
  const emptyValue = detailed && !levels.some((level) => level.shareThreshold) ? '_' : '';
  let name = domain;
  for (let i = 0; i < levels.length; i++) {
    const level = levels[i] as StatLevel;
    if (!takesRequestValue(level, detailed)) {
      name += `.${policyPart(level, shownIn(level, secretKeys))}`;
      continue;
    }
    const { value } = entries[i] as Entry;
    const shown = value !== '' && isSecretKey(level.key, secretKeys) ? redacted(value) : value;
    name += `.${level.key}${shown === '' ? emptyValue : `_${shown}`}`;
  }
  return name;
}

/** Returns whether the request's value of a level is part of a rule's name. */
function takesRequestValue(level: StatLevel, detailed: boolean): boolean {
  if (!detailed && !level.valueToMetric) return false;
  if (level.matcher !== undefined) return !level.shareThreshold;
  return level.value === '' || (!level.shareThreshold && level.value.includes('*'));
}

function shownIn({ key, value }: StatLevel, secretKeys: ReadonlySet<string>): string {
  return shownValue(value, isSecretKey(key, secretKeys));
}

function policyPart({ key, matcher }: StatLevel, shown: string): string {
  // Dots separate the levels, so a list must not contain any.
  if (matcher !== undefined) return `${key}_${matcherName(matcher).replaceAll('.', '_')}`;
  return shown === '' ? key : `${key}_${shown}`;
}

/** Position of a node in its domain's tree, which determines the names of its rules and children. */
export interface TreePosition extends StatPosition {
  /** {@link RuleNames.path} of a single limit here; '' for the file itself. */
  readonly path: string;
  /** See {@link placeBelow}. */
  readonly place: string;
}

export function rootPosition(domain: string): TreePosition {
  return { path: '', place: '', statName: domain, takesValues: false, takesDetails: false };
}

/** Returns the position of a child node. Values of credentials and of `secretKeys` are redacted. */
export function childPosition(
  above: TreePosition,
  fields: NodeFields,
  secretKeys: ReadonlySet<string>,
): TreePosition {
  const { key, value, matcher } = fields;
  // Computed once for both names, because a digest takes most of the time.
  const shown = matcher === undefined ? shownValue(value, isSecretKey(key, secretKeys)) : value;
  const label = nodeLabel(key, shown, matcher, false);
  return {
    // Joined, because a template string would keep its parts alive, which slows down garbage collections with
    // thousands of rules.
    path: above.path === '' ? label : [above.path, label].join('/'),
    place: placeBelow(above.place, fields),
    statName: statNameBelow(above.statName, fields, shown),
    takesValues: above.takesValues || takesRequestValue(fields, false),
    takesDetails: above.takesDetails || takesRequestValue(fields, true),
  };
}

/** Returns the names of the rule with number `index`, from 0, of a node with these fields. */
export function ruleNames(
  { name, hold }: Pick<RuleSpec, 'name' | 'hold'>,
  rate: Rate | undefined,
  index: number,
  { isList, detailedMetric }: NodeFields,
  place: TreePosition,
): RuleNames {
  const { path } = place;
  const digestOf = (limit: string): string => (hold === undefined ? '' : ruleDigest(place.place + limit));
  const statName = fixedStatName(place, detailedMetric);
  const shape = rate === undefined ? '' : shapePart(rate);
  if (!isList) return { path, digest: digestOf(''), statName, bucketSuffix: shape, statSuffix: '' };
  const label = name === '' ? String(index + 1) : name;
  const statSuffix = `.${label}`;
  const limit = limitPart(name, index + 1);
  return {
    path: `${path}[${label}]`,
    digest: digestOf(limit),
    statName: statName === '' ? '' : statName + statSuffix,
    bucketSuffix: limit + shape,
    statSuffix,
  };
}
