const QUOTE_IT = 'write the text in quotes';

/**
 * What is said in the place of the parser's own sentences, by how these begin: they name no remedy, and some quote the
 * text that they stumble over, which may be an API key.
 */
const SENTENCES: readonly (readonly [start: string, sentence: string])[] = [
  ['Alias cannot be an empty string', 'a "*" without quotes begins an alias; quote it, as in "*"'],
  ['Anchor cannot be an empty string', 'an "&" without quotes begins an anchor; quote it, as in "&"'],
  ['Plain value cannot start with', `a text that begins with this character needs quotes; ${QUOTE_IT}`],
  ['Missing closing', 'a quoted text is not closed; add the missing quote, here or on a line above'],
  [
    'Nested mappings are not allowed',
    `there is a second ": " in one value; ${QUOTE_IT}, or correct the indentation of the next line`,
  ],
  [
    'Implicit map keys need to be followed by map values',
    'this line is no "key: value"; write a colon and a space behind the key, or correct the indentation',
  ],
  [
    'Implicit keys need to be on a single line',
    'a key and its colon must stand on one line; write a colon and a space behind the key',
  ],
  [
    'All mapping items must start at the same column',
    'the keys of one mapping must be indented alike; correct the spaces before this line or those above it',
  ],
  [
    'All sequence items must start at the same column',
    'the items of one list must be indented alike; correct the spaces before this line or those above it',
  ],
  [
    'A block sequence may not be used as an implicit map key',
    'this list item is indented unlike what is above it; correct the spaces before the "-"',
  ],
  ['Tabs are not allowed as indentation', 'there is a tab in the indentation; write spaces in its place'],
  ['Flow map', 'a "{" is not closed; add the missing "}", or indent the lines between more than the key'],
  [
    'Flow sequence',
    'a "[" is not closed; add the missing "]", or indent the lines between more than the key',
  ],
  [
    'Block collections are not allowed within flow collections',
    'a comma is missing between two items in brackets; add it',
  ],
  ['Missing , ', 'a comma is missing between two items in brackets; add it'],
  ['Missing space after :', 'there is no space after a colon; add one'],
  ['Unexpected , in flow', 'there is a comma too many in brackets; remove it'],
  ['Unexpected empty item in flow', 'there is a comma too many in brackets; remove it'],
  [
    'Unexpected block-seq-ind on same line with key',
    'a list cannot begin on the line of its key; begin a new line before the "-", or quote the text',
  ],
  ['Comments must be separated', `a "#" needs a space before it to begin a comment; add one, or ${QUOTE_IT}`],
  [
    'Block scalar header',
    `what follows "|" or ">" must begin on the next line; begin a new line there, or ${QUOTE_IT}`,
  ],
];

/** The same by the parser's code, for sentences that are not listed. */
const BY_CODE: ReadonlyMap<string, string> = new Map([
  ['TAG_RESOLVE_FAILED', 'a tag (!name) cannot be resolved; remove it, or quote the text'],
  ['BAD_COLLECTION_TYPE', 'a tag (!name) does not fit the value; remove it'],
  ['BAD_DIRECTIVE', 'a directive (a line that begins with %) is wrong; remove it'],
  ['BAD_DQ_ESCAPE', 'this escape sequence is unknown; write "\\\\" for a backslash'],
  ['BAD_ALIAS', `an alias or anchor is wrong; remove it, or ${QUOTE_IT}`],
  ['MULTIPLE_ANCHORS', 'a value has two anchors (&name); remove one'],
  ['MULTIPLE_TAGS', 'a value has two tags (!name); remove one'],
  ['BAD_INDENT', 'the indentation is wrong; correct the spaces before this line or those above it'],
  ['KEY_OVER_1024_CHARS', 'a key is longer than 1024 characters; shorten it'],
]);

const OTHERS =
  'this cannot stand here; check the indentation, the brackets and the quotes on this line and above';

/**
 * What is wrong with the syntax of a document, and what to do about it. `before` is the text on the line up to the
 * place of the error, '' where nothing of it may be shown.
 */
export function syntaxSentence(
  error: { readonly code: string; readonly message: string },
  before: string,
): string {
  const known = SENTENCES.find(([start]) => error.message.startsWith(start));
  const sentence = known?.[1] ?? BY_CODE.get(error.code) ?? OTHERS;
  // Most often a pattern for every value: what to write is told whole.
  const [, key] = error.message.startsWith('Alias cannot') ? (/([a-z_]{1,24}): +$/.exec(before) ?? []) : [];
  return `this is not valid YAML: ${key === undefined ? sentence : sentence.replace(/"\*"$/, `${key}: "*"`)}`;
}
