import { listSome } from '../../runtime/texts.js';
import { sha256Hex } from '../redact.js';

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
  return listSome(items, MAX_SHOWN_ITEMS, (item) => matcherName({ items: [item] }));
}

/** The key of the matcher in the policy file. */
export function matcherField({ kind }: ValueMatcher): (typeof MATCHER_FIELDS)[MatcherKind] {
  return MATCHER_FIELDS[kind];
}

/** Units (MatchWork) for each byte of a value in which strings between stars are searched: up to 8 ns. */
const SEARCH_UNITS = 2;
/**
 * V8's search (Boyer-Moore) uses only the last characters of longer strings (kBMMaxShift), and may compare a whole
 * string at each position of a value, 16 characters in the time of a unit.
 */
const MAX_SHIFT_LENGTH = 250;
const COMPARED_PER_UNIT = 16;

/** A value pattern: `*` matches any characters, including none. All other characters are literal. */
export class Wildcard {
  readonly pattern: string;
  readonly prefix: string;
  readonly suffix: string;
  /** Strings that must occur between prefix and suffix, in this order. */
  readonly middle: readonly string[];
  /** Units (MatchWork) that the pattern costs for each byte of a value. */
  readonly unitsPerByte: number;
  private readonly fixedLength: number;

  /** `pattern` contains at least one `*`. */
  constructor(pattern: string) {
    const parts = pattern.split('*');
    this.pattern = pattern;
    this.prefix = parts[0] as string;
    this.suffix = parts.at(-1) as string;
    this.middle = parts.slice(1, -1).filter((part) => part !== '');
    const compared = this.middle.reduce(
      (sum, { length }) => (length > MAX_SHIFT_LENGTH ? sum + length : sum),
      0,
    );
    this.unitsPerByte = this.middle.length === 0 ? 1 : SEARCH_UNITS + Math.ceil(compared / COMPARED_PER_UNIT);
    this.fixedLength = parts.reduce((sum, part) => sum + part.length, 0);
  }

  /**
   * Returns whether the whole value matches. Taking the leftmost position of each inner text leaves the most space for
   * the next, so no backtracking is needed.
   */
  matches(value: string): boolean {
    if (value.length < this.fixedLength) return false;
    if (!value.startsWith(this.prefix) || !value.endsWith(this.suffix)) return false;
    const end = value.length - this.suffix.length;
    let from = this.prefix.length;
    for (let i = 0; i < this.middle.length; i++) {
      const part = this.middle[i] as string;
      const found = value.indexOf(part, from);
      if (found < 0 || found + part.length > end) return false;
      from = found + part.length;
    }
    return true;
  }
}
