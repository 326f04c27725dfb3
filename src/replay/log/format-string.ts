/**
 * A command operator of an Envoy format string, such as `%REQ(X-TENANT)%`, without percent signs and maximum length.
 * Header names are in lower case, because they are compared without case: `REQ(x-tenant)`.
 *
 * See "Command Operators" in Envoy's documentation of access logs.
 */
export type Operator = string;

/** A part of a format string: a literal text, or the operators of which Envoy writes the first that has a value. */
export type FormatPart = { readonly text: string } | { readonly operators: readonly Operator[] };

/** Operators whose argument is a header name, or two with `?` between them. */
const HEADER_OPERATORS = new Set(['REQ', 'RESP', 'TRAILER', 'REQ_WITHOUT_QUERY']);

/** Matches an operator, or `%%` for a percent sign. The argument may contain percent signs: START_TIME(%s). */
const OPERATOR = /%(?:%|([A-Z0-9_]+)(?:\(([^)]*)\))?(?::\d+)?%)/g;

/** Splits an Envoy format string into texts and operators. */
export function parseFormatString(format: string): readonly FormatPart[] {
  const parts: FormatPart[] = [];
  let text = '';
  let end = 0;
  for (const found of format.matchAll(OPERATOR)) {
    const [whole, name, argument] = found;
    text += format.slice(end, found.index);
    end = found.index + whole.length;
    if (name === undefined) {
      text += '%';
      continue;
    }
    if (text !== '') parts.push({ text });
    text = '';
    parts.push({ operators: operatorsOf(name, argument) });
  }
  text += format.slice(end);
  if (text !== '') parts.push({ text });
  return parts;
}

/** Returns the operators in the order in which Envoy tries them: `REQ(A?B)` is header A, or else header B. */
function operatorsOf(name: string, argument: string | undefined): readonly Operator[] {
  if (argument === undefined || name === 'START_TIME') return [name];
  if (!HEADER_OPERATORS.has(name)) return [`${name}(${argument})`];
  return argument.split('?').map((header) => `${name}(${header.toLowerCase()})`);
}

/** Writes an operator as in a format string: `%REQ(X-TENANT)%`. */
export function formatOf(operator: Operator): string {
  return `%${operator.startsWith('REQ(') || operator.startsWith('RESP(') ? operator.toUpperCase() : operator}%`;
}
