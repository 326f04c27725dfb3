import type { Rate } from '../../limiter/rate.js';
import { nodeLabel } from '../policy-node.js';
import { isSecretKey, shownValue } from '../redact.js';
import type { RuleNames, RuleSpec } from '../rule.js';
import type { NodeFields } from '../spec.js';
import { CANDIDATE_PART, limitPart, shapePart } from './bucket-key.js';
import { fixedStatName, type StatPosition, statNameBelow, takesRequestValue } from './stat-name.js';

/** Where a node stands in the tree of its domain: what the names of its rules, and of those below, are made from. */
export interface TreePosition extends StatPosition {
  /** {@link RuleNames.path} of a single limit here; '' for the file itself. */
  readonly path: string;
}

/** The place of the file itself. */
export function rootPosition(domain: string): TreePosition {
  return { path: '', statName: domain, takesValues: false, takesDetails: false };
}

/** The place of a node below another. Values of `secretKeys`, and of credentials, are redacted. */
export function childPosition(
  above: TreePosition,
  fields: NodeFields,
  secretKeys: ReadonlySet<string>,
): TreePosition {
  const { key, value, matcher } = fields;
  // Once for both names: a digest takes longer than all else.
  const shown = matcher === undefined ? shownValue(value, isSecretKey(key, secretKeys)) : value;
  const label = nodeLabel(key, shown, matcher, false);
  return {
    // Joined: a template would keep its parts alive beside it, for each of thousands of rules, and collections take
    // longer then.
    path: above.path === '' ? label : [above.path, label].join('/'),
    statName: statNameBelow(above.statName, fields, shown),
    takesValues: above.takesValues || takesRequestValue(fields, false),
    takesDetails: above.takesDetails || takesRequestValue(fields, true),
  };
}

/** The names of the rule that is the `index`-th, from 0, of a node with these fields at `place`. */
export function ruleNames(
  { name, candidate }: Pick<RuleSpec, 'name' | 'candidate'>,
  rate: Rate | undefined,
  index: number,
  { isList, detailedMetric }: NodeFields,
  place: TreePosition,
): RuleNames {
  const { path } = place;
  const statName = fixedStatName(place, detailedMetric);
  const shape = rate === undefined ? '' : shapePart(rate);
  if (candidate) return { path, statName, bucketSuffix: CANDIDATE_PART + shape, statSuffix: '' };
  if (!isList) return { path, statName, bucketSuffix: shape, statSuffix: '' };
  const label = name === '' ? String(index + 1) : name;
  const statSuffix = `.${label}`;
  return {
    path: `${path}[${label}]`,
    statName: statName === '' ? '' : statName + statSuffix,
    bucketSuffix: limitPart(name, index + 1) + shape,
    statSuffix,
  };
}
