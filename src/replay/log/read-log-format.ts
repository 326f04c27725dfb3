import { formatProblem, ProblemList } from '../../config/yaml/config-problem.js';
import { FieldReader } from '../../config/yaml/field-reader.js';
import { MAX_FILE_BYTES } from '../../config/yaml/yaml-bounds.js';
import type { YamlMap } from '../../config/yaml/yaml-document.js';
import { parseYamlDocuments } from '../../config/yaml/yaml-part.js';
import { messageOf, readRegularFile } from '../../regular-file.js';
import { formatNode, logFormat } from '../envoy/read/access-log.js';
import { withProtoNames } from '../envoy/read/proto-names.js';
import { jsonMembers } from './json-format.js';
import { jsonFormat, type LogFormat, textFormat } from './log-format.js';

const OPERATOR = /%[A-Z0-9_]+(?:\([^)]*\))?(?::\d+)?%/;

/**
 * Reads `--log-format`: a format string of Envoy, or the path of a file with one, with `json_format`, or with a
 * mapping. Returns an error message if it is invalid.
 */
export function readLogFormat(text: string): LogFormat | string {
  if (OPERATOR.test(text)) return textFormat('the format of --log-format', text);
  let bytes: Buffer;
  try {
    bytes = readRegularFile(text, MAX_FILE_BYTES);
  } catch (error) {
    return (
      `--log-format "${text.slice(0, 60)}" is neither a format string, such as "%START_TIME% %REQ(:PATH)%", nor a ` +
      `file: ${messageOf(error, text.slice(0, 60))}`
    );
  }
  return readFormatFile(text, bytes);
}

function readFormatFile(name: string, bytes: Buffer): LogFormat | string {
  const problems = new ProblemList(name);
  const [document] = parseYamlDocuments(bytes, problems);
  const format = document?.kind === 'map' ? formatOfDocument(document, problems) : undefined;
  const [error] = problems.errors;
  // A format string may look like damaged YAML.
  if (format === undefined && document?.kind !== 'map' && OPERATOR.test(bytes.toString()))
    return textFormat(`the format in ${name}`, bytes.toString());
  if (error !== undefined) return formatProblem(error);
  return format ?? `${name} has no format; write "json_format", "text_format" or "log" as in a mapping`;
}

function formatOfDocument(document: YamlMap, problems: ProblemList): LogFormat | undefined {
  const reader = new FieldReader(withProtoNames(document) as YamlMap, '', problems);
  const format = logFormat(reader.mapping('log_format') ?? reader);
  if (format !== undefined) return format;
  // The members of json_format themselves.
  const members = jsonMembers(formatNode(document));
  return members.length === 0 ? undefined : jsonFormat(`the format in ${problems.file}`, members);
}
