import { type ProblemList, WHOLE_FILE } from './config-problem.js';
import { nestingBound } from './nesting.js';
import { readPlainYaml } from './plain-yaml.js';
import { MAX_FILE_BYTES, MAX_YAML_DEPTH, TOO_DEEP } from './yaml-bounds.js';
import type { ShowKey, YamlValue } from './yaml-value.js';

export {
  isNull,
  joinPath,
  type ShowKey,
  type YamlField,
  type YamlList,
  type YamlMap,
  type YamlScalar,
  type YamlValue,
} from './yaml-value.js';

/**
 * Parses the first document of a file. Reports what is wrong into `problems`. Syntax errors, exceeded limits and a file
 * without content give undefined; a bad alias, a bad merge key or a key that may not be shown and stands twice leave a
 * value to go on with, although the file is refused. Of any other key that stands twice the last counts, as in
 * envoyproxy/ratelimit, with a warning. With `secret`, messages never repeat anything of the file; `showKey` decides
 * key by key.
 */
export function parseYaml(
  bytes: Uint8Array,
  problems: ProblemList,
  options: { readonly secret?: boolean; readonly showKey?: ShowKey } = {},
): YamlValue | undefined {
  const text = decodeYaml(bytes, problems);
  return text === undefined ? undefined : parseYamlText(text, problems, options);
}

/** As {@link parseYaml}, for a text that {@link decodeYaml} gave, or a part of one. */
export function parseYamlText(
  text: string,
  problems: ProblemList,
  options: { readonly secret?: boolean; readonly showKey?: ShowKey } = {},
): YamlValue | undefined {
  const showKey = options.showKey ?? (() => options.secret !== true);
  const plain = readPlainYaml(text, showKey, options.secret === true);
  if (plain !== undefined) return plain;
  // Read where it is needed: to load the parser of all YAML takes as long as to read a policy.
  const { readAnyYaml } = require('./any-yaml.js') as typeof import('./any-yaml.js');
  return readAnyYaml(text, problems, options, showKey);
}

/** The line ends U+2028 and U+2029; in the group what is passed over: quotes, which may hold them, and comments. */
const UNICODE_LINE_ENDS =
  /((?<=^|[\s[{,:])(?:"(?:[^"\\]|\\[\s\S])*"|'(?:[^']|'')*')|(?<=^|\s)#.*)|[\u2028\u2029]/gm;

/**
 * Bytes to text, in UTF-8 or, behind its byte-order mark, UTF-16; undefined where they are not valid. The other line
 * ends of YAML 1.1, such as a carriage return or U+2028 alone, become line feeds, so that every place stays where it
 * is.
 */
export function yamlText(bytes: Uint8Array): string | undefined {
  const mark = (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0);
  const encoding = mark === 0xfffe ? 'utf-16le' : mark === 0xfeff ? 'utf-16be' : 'utf-8';
  let text: string;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
  text = text.replaceAll(/\r(?!\n)|\u0085/g, '\n');
  if (!/[\u2028\u2029]/.test(text)) return text;
  return text.replaceAll(UNICODE_LINE_ENDS, (_found, kept: string | undefined) => kept ?? '\n');
}

/** Bytes to text; reports what can be no YAML text, and what goes beyond the bounds of one. */
export function decodeYaml(bytes: Uint8Array, problems: ProblemList): string | undefined {
  if (bytes.length > MAX_FILE_BYTES) {
    problems.error(
      WHOLE_FILE,
      '',
      `the file has ${bytes.length} bytes, more than the maximum of ${MAX_FILE_BYTES}; split it into several files`,
    );
    return undefined;
  }
  const text = yamlText(bytes);
  if (text === undefined) {
    problems.error(WHOLE_FILE, '', 'the file is not UTF-8 text; save it as UTF-8');
    return undefined;
  }
  if (text.includes('\0')) {
    problems.error(WHOLE_FILE, '', 'the file is binary; a policy must be YAML text');
    return undefined;
  }
  if (nestingBound(text, MAX_YAML_DEPTH) > MAX_YAML_DEPTH) {
    problems.error(WHOLE_FILE, '', TOO_DEEP);
    return undefined;
  }
  return text;
}
