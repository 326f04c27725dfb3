import { firstNames } from '../../runtime/texts.js';
import { sha256Hex } from '../names/sha256.js';

/** A switch over kinds must be exhaustive, which the compiler checks. */
export type MatcherKind = 'cidr' | 'regex';

/** Field of the policy file for each kind. */
export const MATCHER_FIELDS = {
  cidr: 'value_cidr',
  regex: 'value_regex',
} as const satisfies Readonly<Record<MatcherKind, string>>;

/** Separator between the key and the name of a matcher. */
const LABEL_SIGNS: Readonly<Record<MatcherKind, string>> = { cidr: ' in ', regex: '~' };

/** A node's condition for values, instead of one value. Plain data; part of a node's specification. */
export interface ValueMatcher {
  readonly kind: MatcherKind;
  /** Blocks in canonical form, or patterns, in file order. */
  readonly items: readonly string[];
  /** What each pattern costs, see `patternCost` (regex-list.ts); empty for blocks. */
  readonly costs: readonly number[];
}

/** Maximum length of an item in messages, in UTF-16 units. */
const MAX_SHOWN_UNITS = 60;
/** Maximum number of items in messages. */
const MAX_SHOWN_ITEMS = 10;

/**
 * Returns the name of a matcher: its first item, `10.0.0.0/8`, shortened if it is long. It is unique on its level, and
 * stays the same, together with its statistics, when items are appended.
 */
export function matcherName({ items }: Pick<ValueMatcher, 'items'>): string {
  const first = items[0] ?? '';
  return first.length <= MAX_SHOWN_UNITS
    ? first
    : `${first.slice(0, MAX_SHOWN_UNITS)}…${sha256Hex(first).slice(0, 8)}`;
}

/** Returns `ip in 10.0.0.0/8,…` or `path~^/v[0-9]+$`, which differ from the label of a plain node with its `=`. */
export function matcherLabel(key: string, matcher: ValueMatcher): string {
  const more = matcher.items.length > 1 ? ',…' : '';
  return `${key}${LABEL_SIGNS[matcher.kind]}${matcherName(matcher)}${more}`;
}

/** Describes all items of a matcher: `10.0.0.0/8, 192.168.0.0/16, and 3 more`. */
export function describeMatcher({ items }: ValueMatcher): string {
  return firstNames(items, MAX_SHOWN_ITEMS, (item) => matcherName({ items: [item] }));
}

/** Returns its field in the policy file. */
export function matcherField({ kind }: ValueMatcher): (typeof MATCHER_FIELDS)[MatcherKind] {
  return MATCHER_FIELDS[kind];
}
