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

/** Marks of other tools. They cause several errors, and the parser's messages do not explain any of them. */
const MARKS: readonly (readonly [mark: RegExp, sentence: string])[] = [
  [/^(?:<{7}|={7}|>{7})(?: |$)/m, MERGE_CONFLICT],
  [/\{\{/, TEMPLATE],
  [/\$\{/, VARIABLE],
];

/** Codes of the parser whose messages repeat text of the document, which may be an API key. */
const QUOTING: ReadonlySet<string> = new Set(['BAD_DIRECTIVE', 'BAD_DQ_ESCAPE', 'TAG_RESOLVE_FAILED']);

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
  const start = text.lastIndexOf('\n', Math.min(offset, error.pos[0]) - 1) + 1;
  const end = text.indexOf('\n', offset);
  const lines = text.slice(start, end < 0 ? text.length : end);
  for (const [mark, sentence] of MARKS) {
    const at = lines.search(mark);
    if (at >= 0) return { offset: start + at, sentence, isLast: true };
  }
  return { offset, sentence: `this is not valid YAML: ${shownMessage(error)}`, isLast: false };
}

/** Returns the offset of the mistake. The parser sometimes reports the place where it noticed the mistake. */
function placeOf({ code, message, pos }: YAMLParseError, text: string, findOpening: FindOpening): number {
  const [start, end] = pos;
  // A line that continues the value above it: the mistake is the indentation of the last line.
  if (code === 'MULTILINE_IMPLICIT_KEY') return Math.max(start, end - 1);
  const isUnclosed = message.startsWith('Missing closing') || message.includes('end with a');
  return (
    (isUnclosed ? findOpening(start) : undefined) ?? start + (/^ */.exec(text.slice(start))?.[0].length ?? 0)
  );
}

function shownMessage({ code, message }: YAMLParseError): string {
  if (QUOTING.has(code)) return code;
  // The token follows the message.
  return code === 'UNEXPECTED_TOKEN' ? (message.split(': ', 1)[0] as string) : message;
}
