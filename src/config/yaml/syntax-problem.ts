import type { YAMLParseError } from 'yaml';

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

/**
 * Marks of other tools, and missing spaces. They cause several errors, which the parser's messages do not explain. A
 * group in front of a mark is skipped.
 */
const MARKS: readonly (readonly [mark: RegExp, sentence: string])[] = [
  [/^(?:<{7}|={7}|>{7})(?: |$)/m, MERGE_CONFLICT],
  [/\{\{/, TEMPLATE],
  [/\$\{/, VARIABLE],
  [/^( *)-[A-Za-z_]+:/m, 'a space is missing after the "-"; write "- key: value"'],
  [/^([ -]*)[A-Za-z_]+:[^ \t\r\n:/]/m, 'a space is missing after the colon; write "key: value"'],
];

/** The parser's messages without the text of the document that they repeat, which may be an API key. */
const WITHOUT_TEXT: ReadonlyMap<string, string> = new Map([
  ['BAD_DIRECTIVE', 'Invalid directive'],
  ['BAD_DQ_ESCAPE', 'Invalid escape sequence'],
  ['TAG_RESOLVE_FAILED', 'Unresolved tag'],
]);

/** What to do about frequent errors, by the code or the start of the message, which names no remedy. */
const REMEDIES: readonly (readonly [error: string, remedy: string])[] = [
  ['BAD_DQ_ESCAPE', 'write "\\\\" for a backslash, or use single quotes'],
  ['BLOCK_AS_IMPLICIT_KEY', 'correct the indentation, or put a value that contains ": " in quotes'],
  ['MULTILINE_IMPLICIT_KEY', 'write a key, a colon and a space on this line, or correct its indentation'],
  ['TAB_AS_INDENT', 'use spaces'],
  ['TAG_RESOLVE_FAILED', 'remove the tag, or put the text in quotes'],
  ['All ', 'correct the spaces before this line, or before the lines above it'],
  ['Implicit map keys need', 'write a colon and a space after the key'],
  ['Sequence item without', 'begin the line with "- ", or correct the spaces before it'],
];

/** A syntax error as reported to the user. */
export interface SyntaxProblem {
  /** Offset of the problem in the text. */
  readonly offset: number;
  /** Contains nothing from the document. */
  readonly sentence: string;
  /** Whether later errors of the parser are caused by the same mistake. */
  readonly isLast: boolean;
}

/** Returns the start of the quoted text, list or mapping in brackets that ends at an offset, if there is one. */
export type FindOpening = (end: number) => number | undefined;

/** Returns what the parser reports about a document, with the place of the mistake. */
export function syntaxProblem(error: YAMLParseError, text: string, findOpening: FindOpening): SyntaxProblem {
  const offset = placeOf(error, text, findOpening);
  const start = lineStart(text, Math.min(offset, error.pos[0]));
  const lines = text.slice(start, lineEnd(text, offset));
  for (const [mark, sentence] of MARKS) {
    const found = mark.exec(lines);
    if (found === null) continue;
    const [, before = ''] = found;
    return { offset: start + found.index + before.length, sentence, isLast: true };
  }
  return { offset, sentence: `this is not valid YAML: ${shownMessage(error)}`, isLast: false };
}

/** Returns the offset of the mistake. The parser sometimes reports the place where it noticed the mistake. */
function placeOf({ code, message, pos }: YAMLParseError, text: string, findOpening: FindOpening): number {
  const [start, end] = pos;
  const rest = text.slice(start, lineEnd(text, start));
  const isValue = /[^ -]/.test(text.slice(lineStart(text, start), start));
  // The line below a value is indented more than the key of the value.
  if (code === 'MULTILINE_IMPLICIT_KEY' && isValue) {
    return Math.max(start, skipSpaces(text, lineStart(text, end - 1)));
  }
  if (code === 'BLOCK_AS_IMPLICIT_KEY' && isValue && !/:(?:\s|$)/.test(rest)) {
    return skipSpaces(text, Math.min(start + rest.length + 1, text.length));
  }
  const isUnclosed = message.startsWith('Missing closing') || message.includes('end with a');
  return (isUnclosed ? findOpening(start) : undefined) ?? skipSpaces(text, start);
}

/** Returns the offset of the start of the line that contains an offset. */
function lineStart(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1;
}

/** Returns the offset of the end of the line that contains an offset. */
function lineEnd(text: string, offset: number): number {
  const end = text.indexOf('\n', offset);
  return end < 0 ? text.length : end;
}

/** Returns the offset of the first character at or after an offset that is not a space. */
function skipSpaces(text: string, offset: number): number {
  let at = offset;
  while (text[at] === ' ') at++;
  return at;
}

function shownMessage({ code, message }: YAMLParseError): string {
  // The token follows the message.
  const shown = code === 'UNEXPECTED_TOKEN' ? (message.split(': ', 1)[0] as string) : message;
  const [, remedy] = REMEDIES.find(([error]) => code === error || message.startsWith(error)) ?? [];
  return `${WITHOUT_TEXT.get(code) ?? shown}${remedy === undefined ? '' : `; ${remedy}`}`;
}
