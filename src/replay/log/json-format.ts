import { parseFormatString } from './format-string.js';
import type { JsonMember } from './log-format.js';

/** `json_format` of an access log: a format string, or members with their formats. */
export type JsonFormatNode = string | { readonly [name: string]: JsonFormatNode };

/** Returns the members of `json_format`. A member with more than one operator, or with other text, is omitted. */
export function jsonMembers(format: JsonFormatNode, path: readonly string[] = []): readonly JsonMember[] {
  if (typeof format !== 'string')
    return Object.entries(format).flatMap(([name, node]) => jsonMembers(node, [...path, name]));
  const [part, ...others] = parseFormatString(format);
  if (path.length === 0 || part === undefined || others.length > 0 || !('operators' in part)) return [];
  return [{ path, operators: part.operators }];
}
