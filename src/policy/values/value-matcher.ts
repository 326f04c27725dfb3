import { sha256Hex } from '../names/sha256.js';

/** Where kinds differ, the compiler asks for each. */
export type MatcherKind = 'cidr' | 'regex';

/** The field of the policy file that holds each kind. */
export const MATCHER_FIELDS = {
  cidr: 'value_cidr',
  regex: 'value_regex',
} as const satisfies Readonly<Record<MatcherKind, string>>;

/** What stands between the key and the name of a matcher. */
const LABEL_SIGNS: Readonly<Record<MatcherKind, string>> = { cidr: ' in ', regex: '~' };

/** What a node says of values in place of one value. Plain data: part of a node's specification. */
export interface ValueMatcher {
  readonly kind: MatcherKind;
  /** Blocks in their canonical texts, or patterns, in file order. */
  readonly items: readonly string[];
  /** How many instructions each pattern compiles to; none of blocks. */
  readonly sizes: readonly number[];
}

/** Items are shown up to this length, in UTF-16 units. */
const MAX_SHOWN_UNITS = 60;
/** So many items are shown where all would be too many. */
const MAX_SHOWN_ITEMS = 10;

/**
 * How a node names what it matches: its first item, `10.0.0.0/8`, long ones shortened. No other node of its level has
 * it, and items that are put behind it leave the name, and the statistics under it, as they are.
 */
export function matcherName({ items }: Pick<ValueMatcher, 'items'>): string {
  const first = items[0] ?? '';
  return first.length <= MAX_SHOWN_UNITS
    ? first
    : `${first.slice(0, MAX_SHOWN_UNITS)}…${sha256Hex(first).slice(0, 8)}`;
}

/**
 * `ip in 10.0.0.0/8,…` or `path~^/v[0-9]+$`: not to be taken for the value of a plain node, which stands behind a `=`.
 */
export function matcherLabel(key: string, matcher: ValueMatcher): string {
  const more = matcher.items.length > 1 ? ',…' : '';
  return `${key}${LABEL_SIGNS[matcher.kind]}${matcherName(matcher)}${more}`;
}

/** All that a node matches, for those who read it: `10.0.0.0/8, 192.168.0.0/16 and 3 more`. */
export function describeMatcher({ items }: ValueMatcher): string {
  const shown = items.slice(0, MAX_SHOWN_ITEMS).map((item) => matcherName({ items: [item] }));
  const more = items.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** The field of the policy file that holds it. */
export function matcherField({ kind }: ValueMatcher): (typeof MATCHER_FIELDS)[MatcherKind] {
  return MATCHER_FIELDS[kind];
}
