import type { Rate } from '../../limiter/rate.js';
import { nodeLabel } from '../policy-node.js';
import { isSecretKey, shownValue } from '../redact.js';
import type { RuleNames, RuleSpec } from '../rule.js';
import type { NodeFields } from '../spec.js';
import { limitPart, shapePart } from './bucket-key.js';
import { placeBelow, ruleDigest } from './rule-digest.js';
import { fixedStatName, type StatPosition, statNameBelow, takesRequestValue } from './stat-name.js';

/** Position of a node in its domain's tree, which determines the names of its rules and children. */
export interface TreePosition extends StatPosition {
  /** {@link RuleNames.path} of a single limit here; '' for the file itself. */
  readonly path: string;
  /** See {@link placeBelow}. */
  readonly place: string;
}

/** Returns the position of the file itself. */
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
