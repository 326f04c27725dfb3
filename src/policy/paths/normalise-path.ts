import { PathBuffer } from './path-buffer.js';

const SLASH = 0x2f;
const DOT = 0x2e;
const QUESTION_MARK = 0x3f;
const HASH = 0x23;
const COLON = 0x3a;

/**
 * Matches the first character that is not plain text of a segment. A search takes half the time of a loop over the
 * characters.
 */
const NOT_PLAIN = /\/[/.]|[?#%]/;

/** Shared by all requests; no state remains between them. */
const buffer = new PathBuffer();

/**
 * Returns the normal form of a request target's path, so that no spelling gets around a rule. Query and fragment are
 * removed. Escapes are decoded once, except `%2F`, which is not a separator, and invalid escapes. Dot segments are
 * resolved (RFC 3986, 5.2.4), and repeated and trailing slashes removed. The result begins with `/` and is
 * case-sensitive. Takes one pass over the target.
 */
export function normalisePath(target: string): string {
  const end = normalEnd(target);
  if (end >= 0) return end === target.length ? target : target.slice(0, end);
  return buffer.rewrite(target, pathStart(target));
}

/**
 * Returns the end of the path of a target that needs only its query or last slash removed, as most do. Returns -1 for
 * others, and for possible dot segments.
 */
function normalEnd(target: string): number {
  if (target.charCodeAt(0) !== SLASH) return -1;
  let end = target.search(NOT_PLAIN);
  if (end < 0) {
    end = target.length;
  } else {
    const unit = target.charCodeAt(end);
    if (unit !== QUESTION_MARK && unit !== HASH) return -1;
  }
  return end > 1 && target.charCodeAt(end - 1) === SLASH ? end - 1 : end;
}

/** Returns the start of the path: the absolute form of a target (RFC 9112, 3.2.2) begins with scheme and authority. */
function pathStart(target: string): number {
  if (!isLetter(target.charCodeAt(0))) return 0;
  let i = 1;
  while (i < target.length && isOfScheme(target.charCodeAt(i))) i++;
  if (target.charCodeAt(i) !== COLON || !target.startsWith('//', i + 1)) return 0;
  for (i += 3; i < target.length; i++) {
    const unit = target.charCodeAt(i);
    if (unit === SLASH || unit === QUESTION_MARK || unit === HASH) break;
  }
  return i;
}

function isLetter(unit: number): boolean {
  const lower = unit | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Returns whether a unit is a letter, digit, `+`, `-` or `.`. */
function isOfScheme(unit: number): boolean {
  return isLetter(unit) || (unit >= 0x30 && unit <= 0x39) || unit === 0x2b || unit === 0x2d || unit === DOT;
}
