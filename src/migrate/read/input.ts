import { readConfigFile } from '../../config/files/policy-paths.js';
import { manifestsOf } from '../../config/manifests/manifest.js';
import { ROOT_KEYS } from '../../config/read/policy-keys.js';
import { formatProblem, ProblemList } from '../../config/yaml/config-problem.js';
import { type YamlMap, type YamlValue, yamlText } from '../../config/yaml/yaml-document.js';
import { parseYamlDocuments } from '../../config/yaml/yaml-part.js';

/** Format of a file, detected from its content. */
export type Format = 'variables' | 'compose' | 'kubernetes' | 'values' | 'policy' | 'limits';

/** An input file of an installation. */
export interface Input {
  /** Path as the user named it. */
  readonly file: string;
  readonly format: Format;
  readonly text: string;
  readonly lines: readonly string[];
  /** Documents of a YAML file, without empty ones. */
  readonly documents: readonly YamlValue[];
}

/**
 * Reads a file and detects its format. Returns an error message if the file cannot be read or its format is unknown.
 */
export function readInput(file: string): Input | string {
  let bytes: Buffer;
  try {
    bytes = readConfigFile(file);
  } catch (error) {
    return (error as Error).message;
  }
  // A file that is not valid text is rejected later with a reason, unless it is a list of variables.
  return readInputText(file, yamlText(bytes) ?? bytes.toString('utf8').replace(/^\uFEFF/, ''));
}

/** Template actions of Helm: `{{ .Values.image }}`, `{{- include "chart.name" . }}`. */
const TEMPLATE = /\{\{-?\s*(?:\.|include\b|if\b|with\b|range\b|toYaml\b|define\b|end\b)/;

/** Detects the format of a text, like {@link readInput} for a file that contains it. */
export function readInputText(file: string, text: string): Input | string {
  const input = { file, text, lines: text.split('\n') };
  if (beginsWithVariable(input.lines)) return { ...input, format: 'variables', documents: [] };
  const problems = new ProblemList(file);
  const documents = parseYamlDocuments(Buffer.from(text), problems);
  const maps = documents.filter((document): document is YamlMap => document.kind === 'map');
  // A Helm template is not valid YAML until it is rendered.
  if (problems.errorCount > 0 && TEMPLATE.test(text)) {
    return (
      `"${file}" is a Helm chart template; save the rendered manifest, and pass that file: \`helm get ` +
      'manifest <release> > manifest.yaml`, or `helm template <chart> > manifest.yaml`'
    );
  }
  if (maps.length === 0 && documents.some(isLimits)) return { ...input, format: 'limits', documents };
  if (maps.length === 0) {
    // Plain lines also parse as a YAML document. As variables, each invalid line is reported.
    if (problems.errorCount === 0 && documents.length > 0)
      return { ...input, format: 'variables', documents: [] };
    return problems.errors.map(formatProblem).join('\n') || `"${file}" is empty`;
  }
  if (problems.errorCount > 0) return problems.errors.map(formatProblem).join('\n');
  return { ...input, format: formatOf(maps), documents };
}

/** Returns whether the first line that is not a comment sets a variable. */
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

/**
 * Returns whether a mapping without `domain` is a policy. Values of a chart may contain `descriptors`, too, but only
 * with other keys next to it.
 */
function isTree(map: YamlMap | undefined): boolean {
  const keys = [...(map?.fields.keys() ?? [])];
  return keys.includes('descriptors') && keys.every((key) => ROOT_KEYS.includes(key));
}

/**
 * Returns whether a document has the format of Limitador's LIMITS_FILE: a list with an item that has `namespace` and
 * `max_value`.
 */
export function isLimits(document: YamlValue): boolean {
  if (document.kind !== 'list' || document.items.length === 0) return false;
  return document.items.some(
    (item) => item.kind === 'map' && item.fields.has('namespace') && item.fields.has('max_value'),
  );
}
