import type { Entry } from '../../limiter/entry.js';
import { isSecretKey, redacted } from '../redact.js';
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

/**
 * The name of the rule at the end of `levels`, as envoyproxy/ratelimit builds it: the domain, then `key` or `key_value` of each
 * level, joined by dots. Values are those of the policy; those of the request stand where `detailed` (the rule's `detailed_metric`)
 * or a level's `value_to_metric` says so, which gives ''. Secrets are redacted.
 */
export function fixedStatName(
  domain: string,
  levels: readonly StatLevel[],
  detailed: boolean,
  secretKeys: ReadonlySet<string>,
): string {
  if (levels.some((level) => takesRequestValue(level, detailed))) return '';
  return policyStatName(domain, levels, secretKeys);
}

/** The name with the policy's values only: how `/rlconfig` shows a rule, whatever its statistics hold. */
export function policyStatName(
  domain: string,
  levels: readonly StatLevel[],
  secretKeys: ReadonlySet<string>,
): string {
  return levels.reduce((name, level) => `${name}.${policyPart(level, secretKeys)}`, domain);
}

/** {@link fixedStatName} with the values of `entries`, one for each level. */
export function requestStatName(
  domain: string,
  levels: readonly StatLevel[],
  entries: readonly Entry[],
  detailed: boolean,
  secretKeys: ReadonlySet<string>,
): string {
  // A detailed name writes the "_" of an empty value, unless some level shares its threshold: the reference has two texts for it.
  const emptyValue = detailed && !levels.some((level) => level.shareThreshold) ? '_' : '';
  let name = domain;
  for (let i = 0; i < levels.length; i++) {
    const level = levels[i] as StatLevel;
    if (!takesRequestValue(level, detailed)) {
      name += `.${policyPart(level, secretKeys)}`;
      continue;
    }
    const { value } = entries[i] as Entry;
    const shown = value !== '' && isSecretKey(level.key, secretKeys) ? redacted(value) : value;
    name += `.${level.key}${shown === '' ? emptyValue : `_${shown}`}`;
  }
  return name;
}

function takesRequestValue(level: StatLevel, detailed: boolean): boolean {
  if (!detailed && !level.valueToMetric) return false;
  if (level.matcher !== undefined) return !level.shareThreshold;
  return level.value === '' || (!level.shareThreshold && level.value.includes('*'));
}

function policyPart({ key, value, matcher }: StatLevel, secretKeys: ReadonlySet<string>): string {
  // Dots part the levels of a name: a name has as many for every list.
  if (matcher !== undefined) return `${key}_${matcherName(matcher).replaceAll('.', '_')}`;
  if (value === '') return key;
  return `${key}_${isSecretKey(key, secretKeys) && !value.includes('*') ? redacted(value) : value}`;
}
