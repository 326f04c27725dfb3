const SLASH = 0x2f;
const DOT = 0x2e;
const PERCENT = 0x25;
const QUESTION_MARK = 0x3f;
const HASH = 0x23;

/** Keeps a byte order mark: it is a character of the path like any other. Invalid bytes become U+FFFD. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const ESCAPE_RUN = /(?:%(?!2[fF])[0-9a-fA-F]{2})+/g;
/** Absolute form of a request target (RFC 9112, 3.2.2): scheme and authority are no part of the path. */
const ABSOLUTE_FORM = /^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/[^/?#]*/;

/**
 * The path that a request target means, so that no spelling of it escapes a rule: query and fragment are cut, escapes are
 * decoded once (`%2F` stays, as it is no separator; what is no escape stays), dot segments are resolved (RFC 3986, 5.2.4),
 * repeated and trailing slashes dropped. The result begins with `/`. Case counts.
 */
export function normalisePath(target: string): string {
  const end = normalEnd(target);
  if (end >= 0) return end === target.length ? target : target.slice(0, end);
  let path = target.replace(ABSOLUTE_FORM, '');
  const cut = path.search(/[?#]/);
  if (cut >= 0) path = path.slice(0, cut);
  if (path.includes('%')) path = path.replace(ESCAPE_RUN, decodeRun).replaceAll('%2f', '%2F');
  const segments: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') segments.pop();
    else segments.push(segment);
  }
  return `/${segments.join('/')}`;
}

/**
 * Where the path ends, for a target that needs nothing but its query cut, as most do; -1 for others, and when in doubt (a
 * segment that begins with a dot).
 */
function normalEnd(target: string): number {
  if (target.charCodeAt(0) !== SLASH) return -1;
  let previous = SLASH;
  let i = 1;
  for (; i < target.length; i++) {
    const unit = target.charCodeAt(i);
    if (unit === QUESTION_MARK || unit === HASH) break;
    if (unit === PERCENT) return -1;
    if (previous === SLASH && (unit === SLASH || unit === DOT)) return -1;
    previous = unit;
  }
  return previous === SLASH && i > 1 ? -1 : i;
}

function decodeRun(run: string): string {
  return utf8.decode(Buffer.from(run.replaceAll('%', ''), 'hex'));
}
