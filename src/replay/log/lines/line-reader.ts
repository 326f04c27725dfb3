import type { Operator } from '../format-string.js';
import type { LogFormat } from '../log-format.js';
import { callLineReader } from './call-lines.js';
import { jsonLineReader } from './json-lines.js';
import type { LineReader } from './line-fields.js';
import { textLineReader } from './text-lines.js';

/** Returns a reader for the values of `operators`. An operator that the lines lack has no value. */
export function lineReader({ syntax }: LogFormat, operators: readonly Operator[]): LineReader {
  if (syntax.kind === 'text') return textLineReader(syntax.parts, operators);
  if (syntax.kind === 'json') return jsonLineReader(syntax.members, operators);
  return callLineReader(syntax.kind, operators);
}
