const QUOTE_IT = 'put the text in quotes';

/**
 * Replacements for the parser's messages. `start`: the beginning of the parser's message. The parser's messages name no
 * remedy, and some repeat text that may be an API key.
 */
const SENTENCES: readonly (readonly [start: string, sentence: string])[] = [
  ['Alias cannot be an empty string', 'a "*" without quotes begins an alias; quote it, as in "*"'],
  ['Anchor cannot be an empty string', 'an "&" without quotes begins an anchor; quote it, as in "&"'],
  ['Plain value cannot start with', `a string that begins with this character needs quotes; ${QUOTE_IT}`],
  [
    'Missing closing',
    'the quoted string that begins here is not closed; add the missing quote, here or on a line above',
  ],
  ['Nested mappings are not allowed', `a value contains a second ": "; ${QUOTE_IT}`],
  [
    'Implicit map keys need to be followed by map values',
    'this line is not a "key: value" pair; write a colon and a space after the key, or correct the indentation',
  ],
  [
    'Implicit keys need to be on a single line',
    'a key and its colon must be on the same line; write a colon and a space after the key',
  ],
  [
    'All mapping items must start at the same column',
    'the keys of one mapping must have the same indentation; correct the spaces before this line or the lines above it',
  ],
  [
    'All sequence items must start at the same column',
    'the items of one list must have the same indentation; correct the spaces before this line or the lines above it',
  ],
  [
    'A block sequence may not be used as an implicit map key',
    'this list item is not indented like the lines above it; correct the spaces before the "-"',
  ],
  ['Tabs are not allowed as indentation', 'the indentation contains a tab; use spaces instead'],
  [
    'Flow map',
    'the "{" here is not closed; add the missing "}", or indent the text in the braces more than its key',
  ],
  [
    'Flow sequence',
    'the "[" here is not closed; add the missing "]", or indent the text in the brackets more than its key',
  ],
  [
    'Sequence item without - indicator',
    'this line is neither an item of the list above it nor a key of such an item; begin it with "- ", or correct ' +
      'the spaces before it',
  ],
  [
    'Block collections are not allowed within flow collections',
    'a comma is missing between two items in brackets; add it',
  ],
  ['Missing , ', 'a comma is missing between two items in brackets; add it'],
  ['Missing space after :', 'a space is missing after a colon; add one'],
  ['Unexpected , in flow', 'there is an extra comma in the brackets; remove it'],
  ['Unexpected empty item in flow', 'there is an extra comma in the brackets; remove it'],
  [
    'Unexpected block-seq-ind on same line with key',
    'a list cannot begin on the same line as its key; begin a new line before the "-", or quote the text',
  ],
  ['Comments must be separated', `a "#" needs a space before it to begin a comment; add one, or ${QUOTE_IT}`],
  [
    'Block scalar header',
    `the text after "|" or ">" must begin on the next line; begin a new line there, or ${QUOTE_IT}`,
  ],
];

/** Messages by the parser's error code, for messages that are not listed above. */
const BY_CODE: ReadonlyMap<string, string> = new Map([
  ['TAG_RESOLVE_FAILED', 'a tag (!name) cannot be resolved; remove it, or quote the text'],
  ['BAD_COLLECTION_TYPE', 'a tag (!name) does not fit the value; remove it'],
  ['BAD_DIRECTIVE', 'a directive (a line that begins with %) is not valid; remove it'],
  ['BAD_DQ_ESCAPE', 'this escape sequence is unknown; write "\\\\" for a backslash'],
  ['BAD_ALIAS', `an alias or anchor is not valid; remove it, or ${QUOTE_IT}`],
  ['MULTIPLE_ANCHORS', 'a value has two anchors (&name); remove one'],
  ['MULTIPLE_TAGS', 'a value has two tags (!name); remove one'],
  ['BAD_INDENT', 'the indentation is wrong; correct the spaces before this line or the lines above it'],
  ['KEY_OVER_1024_CHARS', 'a key is longer than 1024 characters; shorten it'],
]);

const NO_SPACE = 'a space is missing after the colon; write "key: value"';

const DEEPER =
  'this line is indented more than the key above it, but that key already has a value; indent both ' +
  'lines by the same number of spaces';

/** Maximum number of characters of a line that are inspected. */
const MAX_LINE = 1000;

const OTHERS =
  'the text here is not expected; check the indentation, the brackets and the quotes on this line and ' +
  'the lines above it';

/** Message for an unrendered template, which is often valid YAML. */
export const TEMPLATE =
  'this is a template ("{{") that has not been rendered yet; render it first, for example with "helm ' +
  'template", and load the result, or put the text in quotes';

/** Message for a shell variable that was not substituted. */
export const VARIABLE =
  '"${" begins a variable, and weir does not substitute variables; run the file through envsubst first, ' +
  'and load the result';

const MERGE_CONFLICT =
  'this is a merge conflict marker; keep one of the two sides, and remove the three marker lines';

/** An error of the parser. `pos` has offsets in the text. */
interface SyntaxError {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly [number, number];
}

/** A syntax error as reported to the user. */
export interface SyntaxProblem {
  /** Offset of the problem in the text. */
  readonly offset: number;
  /** The problem and the remedy. Contains nothing from the text but keys of up to 24 letters. */
  readonly sentence: string;
  /** Whether later errors of the parser are caused by the same mistake. */
  readonly isLast: boolean;
}

/**
 * Returns what is wrong with the syntax of a document and what to do. `openedAt` is the start of the quote or bracket
 * whose end the parser expected at `error.pos[0]`, if known. With `secret`, the message repeats nothing from the text.
 */
export function syntaxProblem(
  error: SyntaxError,
  text: string,
  openedAt: number | undefined,
  secret: boolean,
): SyntaxProblem {
  const [offset] = error.pos;
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const line = /.*/.exec(text.slice(lineStart, lineStart + MAX_LINE))?.[0] ?? '';
  if (/^(?:<{7}|={7}|>{7})(?: |$)/.test(line))
    return { offset: lineStart, sentence: MERGE_CONFLICT, isLast: true };
  if (line.includes('{{'))
    return { offset: lineStart + line.indexOf('{{'), sentence: TEMPLATE, isLast: true };
  const at = (place: number, sentence: string): SyntaxProblem => ({
    offset: place,
    sentence: `this is not valid YAML: ${sentence}`,
    isLast: false,
  });
  const { message } = error;
  const first = lineStart + line.search(/\S|$/);
  if (message.startsWith('Nested mappings') || message.startsWith('Implicit')) {
    if (/^ *-[A-Za-z_]+:/.test(line)) return at(first, 'a space is missing after the "-"; write "- key"');
    if (/^[ -]*[A-Za-z_]+:[^ :]/.test(line)) return at(first, NO_SPACE);
    const value = line.slice(offset - lineStart);
    const next = offset + (/^.*(?:\s*\n)? */.exec(text.slice(offset, offset + MAX_LINE))?.[0].length ?? 0);
    if (message.startsWith('Nested') && value !== '' && !/:(?: |$)/.test(value)) return at(next, DEEPER);
  }
  const isIndentation = message.startsWith('Sequence item') || message.startsWith('All ');
  const known = SENTENCES.find(([start]) => message.startsWith(start));
  const sentence = known?.[1] ?? BY_CODE.get(error.code) ?? OTHERS;
  const variable = line.indexOf('${');
  if (sentence === OTHERS && variable >= 0) return at(lineStart + variable, VARIABLE);
  // This is mostly a pattern for every value, so the message shows the complete correct text.
  const before = secret ? '' : line.slice(0, offset - lineStart);
  const [, key] = message.startsWith('Alias cannot') ? (/([a-z_]{1,24}): +$/.exec(before) ?? []) : [];
  const isOpen = message.startsWith('Missing closing') || message.startsWith('Flow ');
  return at(
    (isOpen ? openedAt : undefined) ?? (isIndentation ? first : offset),
    (key === undefined ? sentence : sentence.replace(/"\*"$/, `${key}: "*"`)).replace(
      'this character',
      // The character is one that YAML reserves, so it cannot be part of a secret.
      () => JSON.stringify(text.charAt(offset)),
    ),
  );
}
