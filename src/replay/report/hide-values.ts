import { createHmac, randomBytes } from 'node:crypto';
import { isSecretKey, redacted } from '../../policy/redact.js';
import type { NamedEntry } from '../entry-sources.js';
import { EACH_VALUE } from './gates.js';
import { entryOf } from './names.js';
import type { GateGroup, ReplayReport } from './report.js';

/** Returns how a report shows the value of an entry key. */
export type HideValue = (entry: NamedEntry, value: string) => string;

/** Hexadecimal digits of a hash: a collision among a million values has a probability of 1 in 500. */
const HASH_DIGITS = 12;
/** A string in an unreadable line that may be a secret: at least this many characters of tokens and keys. */
const TOKEN = /[\w+/=.~-]{16,}/g;

/**
 * Returns a function that redacts the values of `secretKeys` and of common credentials. With `anonymise`, it replaces
 * each other value by a hash with a random key, so that the value cannot be guessed from a list of names. A value has
 * the same hash only within this run.
 */
export function valueHider(
  secretKeys: ReadonlySet<string>,
  anonymise: boolean,
  randomKey: Uint8Array = randomBytes(32),
): HideValue {
  return ({ key, source = key }, value) => {
    if (isSecretKey(key, secretKeys) || isSecretKey(source, secretKeys)) return redacted(value);
    if (!anonymise) return value;
    return `hash-${createHmac('sha256', randomKey).update(value).digest('hex').slice(0, HASH_DIGITS)}`;
  };
}

/**
 * Returns the report without values that it must not show. `hide` is the result of {@link valueHider} for the same
 * `anonymise`. Rule paths are redacted already (`Rule.path`), and notes must not contain values.
 */
export function hideValues(report: ReplayReport, hide: HideValue, anonymise: boolean): ReplayReport {
  const { candidates, gates, groups, log, rules } = report;
  const unreadable = log.unreadable.map((lines) => ({
    ...lines,
    example: anonymise ? '(omitted)' : lines.example.replaceAll(TOKEN, '[…]'),
  }));
  const shownRule = <Rule extends { readonly rule: string }>(rule: Rule): Rule =>
    anonymise ? { ...rule, rule: hidePath(rule.rule, hide) } : rule;
  const shownGroup = <Named extends { readonly group?: GateGroup }>(named: Named): Named => {
    const { group } = named;
    if (group === undefined || group.value === EACH_VALUE) return named;
    return { ...named, group: { ...group, value: hide(group, group.value) } };
  };
  return {
    ...report,
    log: { ...log, unreadable },
    rules: rules.map(shownRule),
    ...(candidates !== undefined && { candidates: candidates.map(shownRule) }),
    gates: gates.map((gate) => ({
      ...shownGroup(gate),
      offenders: gate.offenders.map((offender) => ({
        ...shownGroup(offender),
        ...(offender.rule !== undefined && { rule: shownRule(offender.rule) }),
      })),
    })),
    ...(groups !== undefined && {
      groups: {
        ...groups,
        shown: groups.shown.map((group) => ({ ...group, value: hide(entryOf(groups), group.value) })),
      },
    }),
  };
}

/** Hashes a path from its first value on, because values may contain the separators of paths. */
function hidePath(path: string, hide: HideValue): string {
  const [, keys, rest] = /^(.*?(?:=|~| in ))(.*)$/s.exec(path) ?? [];
  return keys === undefined || rest === undefined ? path : keys + hide({ key: '' }, rest);
}
