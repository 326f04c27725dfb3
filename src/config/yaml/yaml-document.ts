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
 * Parses the first document of a file and adds its problems to `problems`. Returns undefined for syntax errors,
 * exceeded limits and empty files. Invalid aliases, invalid merge keys and duplicate hidden keys are errors, too, but
 * return a value so that the caller can continue. For other duplicate keys, the last one counts, as in
 * envoyproxy/ratelimit, with a warning. With `secret`, messages repeat nothing from the file. `showKey` decides for
 * each key.
 */
export function parseYaml(
  bytes: Uint8Array,
  problems: ProblemList,
  options: { readonly secret?: boolean; readonly showKey?: ShowKey } = {},
): YamlValue | undefined {
  const text = decodeYaml(bytes, problems);
  return text === undefined ? undefined : parseYamlText(text, problems, options);
}

/** Does the same as {@link parseYaml} for a text, or a part of one, from {@link decodeYaml}. */
export function parseYamlText(
  text: string,
  problems: ProblemList,
  options: { readonly secret?: boolean; readonly showKey?: ShowKey } = {},
): YamlValue | undefined {
  const showKey = options.showKey ?? (() => options.secret !== true);
  const plain = readPlainYaml(text, showKey, options.secret === true);
  if (plain !== undefined) return plain;
  // Loaded on demand, because loading the full parser takes as long as reading a policy.
  const { readAnyYaml } = require('./any-yaml.js') as typeof import('./any-yaml.js');
  return readAnyYaml(text, problems, options, showKey);
}

/**
 * Matches the line ends U+2028 and U+2029. The group matches text to skip: quotes, which may contain them, and
 * comments.
 */
const UNICODE_LINE_ENDS =
  /((?<=^|[\s[{,:])(?:"(?:[^"\\]|\\[\s\S])*"|'(?:[^']|'')*')|(?<=^|\s)#.*)|[\u2028\u2029]/gm;

/**
 * Decodes UTF-8, or UTF-16 with a byte-order mark; undefined if the bytes are invalid. Other line ends of YAML 1.1,
 * such as a single carriage return or U+2028, become line feeds, so that positions do not change.
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

/** Decodes the bytes of a file. Reports bytes that cannot be YAML text, and text that exceeds the limits. */
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
