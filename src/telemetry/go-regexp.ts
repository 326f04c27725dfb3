/** POSIX classes of Go's regular expressions, as they stand inside brackets. */
const POSIX: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7f',
  blank: '\\t ',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
};

/** What JavaScript's `u` mode lets a backslash stand before, letters and digits aside. */
const ESCAPABLE = /[\^$\\.*+?()[\]{}|/]/;

/**
 * One token of Go's syntax (https://pkg.go.dev/regexp/syntax) that JavaScript writes in another way, or that must be skipped as a whole.
 * In turn: quoted text, escapes, named groups, POSIX classes, brackets that begin with a closing one.
 */
const TOKEN = /\\Q([\s\S]*?)(?:\\E|$)|\\([\s\S])|\(\?P<|\[:(\^?)([a-z]+):\]|\[\^?\]/g;

/**
 * Compiles a regular expression of Go. Returns a sentence when it is none: those that look around or back, too, where Go has no meaning for
 * them but JavaScript has, are taken. A pattern is never taken to mean something else than in Go.
 */
export function compileGoRegExp(pattern: string): RegExp | string {
  const { flags, rest } = leadingFlags(pattern);
  if (rest.includes('(?i') || rest.includes('(?s') || rest.includes('(?m') || rest.includes('(?U')) {
    return 'flags such as (?i) are understood at its beginning only';
  }
  let unknown: string | undefined;
  const translated = rest.replaceAll(
    TOKEN,
    (token, quoted?: string, escaped?: string, not?: string, posix?: string) => {
      if (quoted !== undefined) return quoted.replaceAll(/[\^$\\.*+?()[\]{}|/]/g, '\\$&');
      if (escaped !== undefined) return translateEscape(escaped);
      if (token === '(?P<') return '(?<';
      const members = posix === undefined || not === '^' ? undefined : POSIX[posix];
      if (members === undefined) unknown = token;
      return members ?? token;
    },
  );
  if (unknown !== undefined) return `${unknown} is not understood`;
  try {
    return new RegExp(translated, `u${flags}`);
  } catch (error) {
    return (error as Error).message.replace(/^Invalid regular expression: /, '');
  }
}

/** `(?ims)` at the beginning becomes JavaScript's flags of the same letters. */
function leadingFlags(pattern: string): { readonly flags: string; readonly rest: string } {
  const match = /^\(\?([ims]+)\)/.exec(pattern);
  if (match === null) return { flags: '', rest: pattern };
  return { flags: [...new Set(match[1])].join(''), rest: pattern.slice(match[0].length) };
}

/** A backslash and the character behind it. */
function translateEscape(character: string): string {
  if (character === 'A') return '(?<![\\s\\S])';
  if (character === 'z') return '(?![\\s\\S])';
  if (character === 'a') return '\\x07';
  if (/[\p{L}\d]/u.test(character) || ESCAPABLE.test(character)) return `\\${character}`;
  // Go lets any punctuation be escaped. A hyphen means something else inside brackets when it is not.
  return character === '-' ? '\\x2d' : character;
}
