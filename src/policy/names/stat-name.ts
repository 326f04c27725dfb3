import type { Entry } from '../../limiter/entry.js';
import { isSecretKey, redacted, shownValue } from '../redact.js';
import { matcherName, type ValueMatcher } from '../values/value-matcher.js';

/** What a level of the tree gives to the name of a rule in the statistics. */
export interface StatLevel {
  readonly key: string;
  /** '' takes every value; with a `*` a pattern. */
  readonly value: string;
  /** Takes many values in place of `value`. */
  readonly matcher?: ValueMatcher | undefined;
  readonly shareThreshold: boolean;
  readonly valueToMetric: boolean;
}

/** How rules at one place of the tree are named in statistics: from it come the names of those below. */
export interface StatPosition {
  /** With the policy's values only; see {@link policyStatName}. */
  readonly statName: string;
  /**
   * Whether the request's values stand in the names of rules here: by `value_to_metric` of a level, or in those with
   * `detailed_metric`.
   */
  readonly takesValues: boolean;
  readonly takesDetails: boolean;
}

/** {@link StatPosition.statName} of `level` below another place; `shown` is its {@link shownValue}. */
export function statNameBelow(above: string, level: StatLevel, shown: string): string {
  // Joined: a template would keep its parts alive beside it.
  return [above, policyPart(level, shown)].join('.');
}

/**
 * The name of a rule, as envoyproxy/ratelimit builds it: the domain, then `key` or `key_value` of each level, joined by
 * dots. Values are those of the policy; those of the request stand where `detailed` (the rule's `detailed_metric`) or a
 * level's `value_to_metric` says so, which gives ''. Secrets are redacted.
 */
export function fixedStatName(
  { statName, takesValues, takesDetails }: StatPosition,
  detailed: boolean,
): string {
  return (detailed ? takesDetails : takesValues) ? '' : statName;
}

/** The name with the policy's values only: how `/rlconfig` shows a rule, whatever its statistics hold. */
export function policyStatName(
  domain: string,
  levels: readonly StatLevel[],
  secretKeys: ReadonlySet<string>,
): string {
  return levels.reduce((name, level) => statNameBelow(name, level, shownIn(level, secretKeys)), domain);
}

/** {@link fixedStatName} with the values of `entries`, one for each level. */
export function requestStatName(
  domain: string,
  levels: readonly StatLevel[],
  entries: readonly Entry[],
  detailed: boolean,
  secretKeys: ReadonlySet<string>,
): string {
  // A detailed name writes the "_" of an empty value, unless some level shares its threshold: the reference has two
  // texts for it.
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

/** Whether the request's value of a level stands in the name of a rule. */
export function takesRequestValue(level: StatLevel, detailed: boolean): boolean {
  if (!detailed && !level.valueToMetric) return false;
  if (level.matcher !== undefined) return !level.shareThreshold;
  return level.value === '' || (!level.shareThreshold && level.value.includes('*'));
}

function shownIn({ key, value }: StatLevel, secretKeys: ReadonlySet<string>): string {
  return shownValue(value, isSecretKey(key, secretKeys));
}

function policyPart({ key, matcher }: StatLevel, shown: string): string {
  // Dots part the levels of a name: a name has as many for every list.
  if (matcher !== undefined) return `${key}_${matcherName(matcher).replaceAll('.', '_')}`;
  return shown === '' ? key : `${key}_${shown}`;
}
