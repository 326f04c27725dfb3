import { type ProblemList, WHOLE_FILE } from './config-problem.js';
import type { DocumentReader, YamlOptions } from './document-reader.js';
import { isNull, MAX_FILE_BYTES, type YamlValue } from './yaml-value.js';

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
 * envoyproxy/ratelimit, with a warning.
 */
export function parseYaml(
  bytes: Uint8Array,
  problems: ProblemList,
  options: YamlOptions = {},
): YamlValue | undefined {
  const text = decodeYaml(bytes, problems);
  return text === undefined ? undefined : parseYamlText(text, problems, options);
}

/** Does the same as {@link parseYaml} for a text. */
export function parseYamlText(
  text: string,
  problems: ProblemList,
  options: YamlOptions = {},
): YamlValue | undefined {
  const reader = documentReader(text, problems, options);
  const [first, second] = reader.parse();
  const value = first && reader.read(first);
  if (reader.failed) return undefined;
  if (second !== undefined) {
    problems.warn(
      reader.positionOf(second),
      '',
      'only the first document of a file is read; move the documents after this line to separate files',
    );
  }
  if (value !== undefined && !isNull(value)) return value;
  // An alias without an anchor is already reported.
  if (problems.errors.length > 0) return undefined;
  const remedy =
    options.secret === true ? 'write {} for a table without keys' : 'add a policy, or remove the file';
  problems.error(reader.placeOf(WHOLE_FILE), '', `the file is empty; ${remedy}`);
  return undefined;
}

/**
 * Parses all documents of a file, such as Kubernetes manifests, except empty ones. Problems are added to `problems` and
 * do not affect other documents.
 */
export function parseYamlDocuments(bytes: Uint8Array, problems: ProblemList): readonly YamlValue[] {
  const text = decodeYaml(bytes, problems);
  if (text === undefined) return [];
  const reader = documentReader(text, problems, {});
  const values = reader.parse().flatMap((document) => reader.read(document) ?? []);
  return values.filter((value) => !isNull(value));
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

/** Decodes the bytes of a file. Reports bytes that cannot be YAML text, and files that are too large. */
function decodeYaml(bytes: Uint8Array, problems: ProblemList): string | undefined {
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
  return text;
}

/** Loads the parser only now, because processes that parse nothing do not need it. */
function documentReader(text: string, problems: ProblemList, options: YamlOptions): DocumentReader {
  const reader = require('./document-reader.js') as typeof import('./document-reader.js');
  return new reader.DocumentReader(text, problems, options);
}
