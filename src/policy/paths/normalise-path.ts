import { EXCEEDED, type MatchWork } from '../match-work.js';
import { PathBuffer } from './path-buffer.js';

const SLASH = 0x2f;
const DOT = 0x2e;
const QUESTION_MARK = 0x3f;
const HASH = 0x23;
const COLON = 0x3a;

/** The first that is no plain text of a segment. A search takes half the time of a loop over the characters. */
const NOT_PLAIN = /\/[/.]|[?#%]/;

/** Made once, for the paths of every request: nothing of one is left for the next. */
const buffer = new PathBuffer();

/**
 * The path that a request target means, so that no spelling of it escapes a rule: query and fragment are cut, escapes
 * are decoded once (`%2F` stays, as it is no separator; what is no escape stays), dot segments are resolved (RFC 3986,
 * 5.2.4), repeated and trailing slashes dropped. The result begins with `/`. Case counts. One pass over the target,
 * whatever is in it.
 */
export function normalisePath(target: string): string {
  const end = normalEnd(target);
  if (end >= 0) return end === target.length ? target : target.slice(0, end);
  return buffer.rewrite(target, pathStart(target));
}

/**
 * {@link normalisePath} as far as there is work left: a look costs about 1 ns a character, writing the path anew up to
 * 5 ns.
 */
export function normalisePathWithin(target: string, work: MatchWork): string | typeof EXCEEDED {
  if (!work.spend(20 + (target.length >> 2))) return EXCEEDED;
  const end = normalEnd(target);
  if (end >= 0) return end === target.length ? target : target.slice(0, end);
  return work.spend(32 + target.length) ? buffer.rewrite(target, pathStart(target)) : EXCEEDED;
}

/**
 * Where the path ends, for a target that needs nothing but its query or its last slash cut, as most do; -1 for others,
 * and when in doubt (a segment that begins with a dot).
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

/** Absolute form of a request target (RFC 9112, 3.2.2): scheme and authority are no part of the path. */
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

/** Letters, digits, `+`, `-` and `.`. */
function isOfScheme(unit: number): boolean {
  return isLetter(unit) || (unit >= 0x30 && unit <= 0x39) || unit === 0x2b || unit === 0x2d || unit === DOT;
}
