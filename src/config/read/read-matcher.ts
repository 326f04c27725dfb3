import { parseBlock } from '../../policy/values/cidr.js';
import { MAX_REGEX_LENGTH, patternCost } from '../../policy/values/regex-list.js';
import { MATCHER_FIELDS, type MatcherKind, type ValueMatcher } from '../../policy/values/value-matcher.js';
import { safePrefix } from '../../runtime/shown-address.js';
import type { FieldReader } from './field-reader.js';
import type { DescriptorValues } from './read-rules.js';

const KINDS = Object.keys(MATCHER_FIELDS) as MatcherKind[];
const READERS: Readonly<Record<MatcherKind, (text: string) => Item>> = {
  cidr: readBlock,
  regex: readPattern,
};

/** Reads `value_cidr` or `value_regex` of a node; undefined if the node has neither. Returns only the valid items. */
export function readMatcher(reader: FieldReader, values: DescriptorValues): ValueMatcher | undefined {
  const kind = KINDS.find((one) => reader.field(MATCHER_FIELDS[one]) !== undefined);
  if (kind === undefined) return undefined;
  /** Cost of each item; undefined for address blocks. */
  const items = new Map<string, number | undefined>();
  for (const { value, at, path } of values[MATCHER_FIELDS[kind]] ?? []) {
    const item = READERS[kind](value);
    if ('error' in item) reader.problems.error(at, path, item.error);
    else if (items.has(item.text)) {
      reader.problems.error(at, path, `"${safePrefix(item.text)}" is listed twice; remove one`);
    } else items.set(item.text, item.cost);
  }
  const costs = [...items.values()].filter((cost) => cost !== undefined);
  return { kind, items: [...items.keys()], costs };
}

/** Matches an address with a prefix length. */
const BLOCK = /^[0-9A-Fa-f:.]{2,45}\/[0-9]{1,3}$/;
/** The Envoy action that sends address blocks as text. */
const CIDR_ACTION = 'masked_remote_address';
/**
 * Matches text that is almost certainly a regular expression: `^` at the start, `\d`, `[a-z]+`, `(?`, `(a|b)`, `.*$`.
 * Takes linear time.
 */
const REGEX = /^\^|\\[dwsDWSbB.]|\[[^[\]]+\][+*?{]|\(\?|\([^()|]*\|[^()]*\)|[.)\]][*+]\$$/;

/**
 * Warns about a `value` that looks like a block or a regular expression for {@link readMatcher}. The message does not
 * repeat the value, which may be secret.
 */
export function warnOfLiteral(reader: FieldReader, key: string, value: string): void {
  const literally = value.includes('*')
    ? 'is a pattern in which only "*" has a special meaning'
    : 'is compared literally';
  const message =
    BLOCK.test(value) && key !== CIDR_ACTION && typeof parseBlock(value) !== 'string'
      ? 'so it does not match the addresses in this block; use "value_cidr" to match them'
      : value.length <= MAX_REGEX_LENGTH && REGEX.test(value)
        ? 'and this looks like a regular expression; if it is one, use "value_regex"'
        : undefined;
  if (message !== undefined) reader.warn('value', `"value" ${literally}, ${message}`);
}

/** Matches keys of entries whose value is the method of a request. */
const METHOD_KEY = /(?:^|[._:-])method$/i;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'];

/** Warns about a method that is not in upper case. `field` contains the value that the entry `key` must have. */
export function warnOfMethod(reader: FieldReader, field: string, key: string, value: string): void {
  const method = value.toUpperCase();
  if (!METHOD_KEY.test(key) || method === value || !METHODS.includes(method)) return;
  reader.warn(field, `the case of a method counts, and clients send "${method}"; write "${method}"`);
}

type Item = { readonly text: string; readonly cost: number | undefined } | { readonly error: string };

function readBlock(text: string): Item {
  const block = parseBlock(text);
  return typeof block === 'string' ? { error: block } : { text: block.text, cost: undefined };
}

function readPattern(text: string): Item {
  const cost = patternCost(text);
  return typeof cost === 'string' ? { error: cost } : { text, cost };
}
