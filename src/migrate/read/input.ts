import { readConfigFile } from '../../config/files/policy-paths.js';
import { manifestsOf } from '../../config/manifests/manifest.js';
import { ROOT_KEYS } from '../../config/read/policy-keys.js';
import { formatProblem, ProblemList } from '../../config/yaml/config-problem.js';
import { type YamlMap, type YamlValue, yamlText } from '../../config/yaml/yaml-document.js';
import { parseYamlDocuments } from '../../config/yaml/yaml-part.js';

/** What a file of an installation is, by what it holds. */
export type Format = 'variables' | 'compose' | 'kubernetes' | 'values' | 'policy' | 'limits';

/** A file of an installation. */
export interface Input {
  /** As the user named it. */
  readonly file: string;
  readonly format: Format;
  readonly text: string;
  readonly lines: readonly string[];
  /** Of a YAML file; those that hold nothing are left out. */
  readonly documents: readonly YamlValue[];
}

/** Reads a file and tells what it is; a sentence where it can be neither read nor told. */
export function readInput(file: string): Input | string {
  let bytes: Buffer;
  try {
    bytes = readConfigFile(file);
  } catch (error) {
    return (error as Error).message;
  }
  // What is not a text is refused with a reason where it is not a list of variables.
  return readInputText(file, yamlText(bytes) ?? bytes.toString('utf8').replace(/^\uFEFF/, ''));
}

/** What Helm fills in: `{{ .Values.image }}`, `{{- include "chart.name" . }}`. */
const TEMPLATE = /\{\{-?\s*(?:\.|include\b|if\b|with\b|range\b|toYaml\b|define\b|end\b)/;

/** {@link readInput}, of a text that the file has, or could have. */
export function readInputText(file: string, text: string): Input | string {
  const input = { file, text, lines: text.split('\n') };
  if (beginsWithVariable(input.lines)) return { ...input, format: 'variables', documents: [] };
  const problems = new ProblemList(file);
  const documents = parseYamlDocuments(Buffer.from(text), problems);
  const maps = documents.filter((document): document is YamlMap => document.kind === 'map');
  // A template is no YAML before Helm has filled it in.
  if (problems.errorCount > 0 && TEMPLATE.test(text)) {
    return (
      `"${file}" is a template of a Helm chart; save what it becomes, and name that file: ` +
      '`helm get manifest <release> > manifest.yaml`, or `helm template <chart> > manifest.yaml`'
    );
  }
  if (maps.length === 0 && documents.some(isLimits)) return { ...input, format: 'limits', documents };
  if (maps.length === 0) {
    // Lines of a text are a document, too: what is wrong with them is said line by line.
    if (problems.errorCount === 0 && documents.length > 0)
      return { ...input, format: 'variables', documents: [] };
    return problems.errors.map(formatProblem).join('\n') || `"${file}" is empty`;
  }
  if (problems.errorCount > 0) return problems.errors.map(formatProblem).join('\n');
  return { ...input, format: formatOf(maps), documents };
}

/** Whether the first line that is no comment sets a variable. */
function beginsWithVariable(lines: readonly string[]): boolean {
  const first = lines.find((line) => !/^\s*(?:#.*)?$/.test(line)) ?? '';
  return /^\s*(?:export\s+)?[A-Za-z_][\w.-]*\s*=/.test(first);
}

function formatOf(maps: readonly YamlMap[]): Format {
  if (manifestsOf(maps).length > 0) return 'kubernetes';
  const [first] = maps;
  if (first?.fields.get('services')?.value.kind === 'map') return 'compose';
  if (first?.fields.has('domain') || isTree(first)) return 'policy';
  return 'values';
}

/** Values of a chart may hold `descriptors` too, but then other keys beside them. */
function isTree(map: YamlMap | undefined): boolean {
  const keys = [...(map?.fields.keys() ?? [])];
  return keys.includes('descriptors') && keys.every((key) => ROOT_KEYS.includes(key));
}

/**
 * Whether a document is a file of limits of Limitador, as LIMITS_FILE names it: a list with items that have namespace
 * and max_value.
 */
export function isLimits(document: YamlValue): boolean {
  if (document.kind !== 'list' || document.items.length === 0) return false;
  return document.items.some(
    (item) => item.kind === 'map' && item.fields.has('namespace') && item.fields.has('max_value'),
  );
}
