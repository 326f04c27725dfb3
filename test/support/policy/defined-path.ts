/** Keeps a byte order mark, which is a character of the path like any other. Invalid bytes become U+FFFD. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const ESCAPE_RUN = /(?:%(?!2[fF])[0-9a-fA-F]{2})+/g;
/** Absolute form of a request target (RFC 9112, 3.2.2). Scheme and authority do not belong to the path. */
const ABSOLUTE_FORM = /^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/[^/?#]*/;

/**
 * Returns the normal form of a path, step by step as defined. Tests compare it with `normalisePath`, which needs one
 * pass.
 */
export function definedPath(target: string): string {
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

function decodeRun(run: string): string {
  return utf8.decode(Buffer.from(run.replaceAll('%', ''), 'hex'));
}
