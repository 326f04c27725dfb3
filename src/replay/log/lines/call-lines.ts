import type { Operator } from '../format-string.js';
import {
  type LineSyntax,
  RATE_LIMITED,
  RESPONSE_FLAGS,
  START_TIME,
  WEIR_CALL,
  WEIR_SAMPLE,
} from '../log-format.js';
import { callOfDecision, callOfRequest } from '../weir-call.js';
import { parseObject } from './json-lines.js';
import type { LineFault, LineFields, LineReader } from './line-fields.js';

/** Returns a reader of lines that contain descriptors: weir's decision log, or JSON lines written by anyone. */
export function callLineReader(
  kind: Extract<LineSyntax['kind'], 'decisions' | 'descriptors'>,
  operators: readonly Operator[],
): LineReader {
  const time = operators.indexOf(START_TIME);
  const call = operators.indexOf(WEIR_CALL);
  const sample = operators.indexOf(WEIR_SAMPLE);
  const flags = operators.indexOf(RESPONSE_FLAGS);
  const set = (fields: LineFields, column: number, text: string | undefined): void => {
    if (column >= 0) fields.setText(column, text);
  };
  return (line, fields): LineFault | 'skipped' | undefined => {
    fields.clear();
    const parsed = parseObject(line);
    if (typeof parsed === 'string') return parsed;
    // The decision log may share standard output with weir's other lines.
    if (kind === 'decisions' && parsed['decision'] === undefined) return 'skipped';
    if (parsed['cut'] === true) return 'cut';
    const found = kind === 'decisions' ? callOfDecision(parsed) : callOfRequest(parsed);
    if (typeof found === 'string') return found;
    const { request, holdEnds } = found;
    fields.holdEnds += holdEnds;
    if (holdEnds > 0 && request.descriptors.length === 0) return 'skipped';
    set(fields, time, textOf(parsed['time']));
    set(fields, call, JSON.stringify(request));
    if (parsed['code'] === 'OVER_LIMIT') set(fields, flags, RATE_LIMITED);
    set(fields, sample, textOf(parsed['sample']));
    return undefined;
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}
