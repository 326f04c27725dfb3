import { readConfigFile } from '../../config/files/policy-paths.js';
import { type Manifest, manifestsOf, textAt } from '../../config/manifests/config-maps.js';
import { keysOf } from '../../config/read/policy-fields.js';
import { formatProblem, ProblemList } from '../../config/yaml/config-problem.js';
import {
  parseYamlDocuments,
  type YamlMap,
  type YamlValue,
  yamlText,
} from '../../config/yaml/yaml-document.js';
import { CommandError, EXIT } from '../io.js';

/** An input file of an installation. */
export interface Input {
  /** Path as the user named it. */
  readonly file: string;
  /** Format, detected from the content. */
  readonly format: 'variables' | 'compose' | 'manifests' | 'policy';
  readonly text: string;
  readonly lines: readonly string[];
  /** Documents of a YAML file, without empty ones. */
  readonly documents: readonly YamlValue[];
}

/** Files that do not describe an installation, or that cannot be read. The message says what to pass instead. */
export class InputError extends CommandError {
  /** `isUnsupported`: the files belong to software that `weir migrate` does not support. */
  constructor(message: string, isUnsupported = false) {
    super(isUnsupported ? EXIT.USAGE : EXIT.FAILED, message);
  }
}

/** Template actions of Helm: `{{ .Values.image }}`, `{{- include "chart.name" . }}`. */
const TEMPLATE = /\{\{-?\s*(?:\.|include\b|if\b|with\b|range\b|toYaml\b|define\b|end\b)/;

/** Reads a file. Throws an {@link InputError} if it cannot be read or its format is unknown. */
export function readInput(file: string): Input {
  const bytes = read(file);
  const text = yamlText(bytes) ?? bytes.toString('utf8').replace(/^\uFEFF/, '');
  const input = { file, text, lines: text.split('\n') };
  const variables = { ...input, format: 'variables', documents: [] } as const;
  if (beginsWithVariable(input.lines)) return variables;
  const problems = new ProblemList(file);
  const documents = parseYamlDocuments(Buffer.from(text), problems);
  if (problems.errorCount > 0 && TEMPLATE.test(text)) {
    throw new InputError(
      `"${file}" is a template of a Helm chart; save the rendered manifest, and pass that file: \`helm get ` +
        'manifest <release> > manifest.yaml`',
    );
  }
  if (problems.errorCount > 0) throw new InputError(problems.errors.map(formatProblem).join('\n'));
  const product = otherProduct(documents);
  if (product !== undefined) {
    throw new InputError(
      `"${file}" contains limits of ${product}, and weir migrate does not convert these limits; write a ` +
        'policy by hand, as docs/policy/format.md describes',
      true,
    );
  }
  const maps = documents.filter((document): document is YamlMap => document.kind === 'map');
  const [first] = maps;
  // Plain lines also parse as a YAML document. As variables, each invalid line is reported.
  if (first === undefined && documents.length > 0) return variables;
  if (first === undefined) throw new InputError(`"${file}" is empty`);
  return { ...input, format: formatOf(file, first, maps), documents };
}

function read(file: string): Buffer {
  try {
    return readConfigFile(file);
  } catch (error) {
    throw new InputError((error as Error).message);
  }
}

/** Returns whether the first line that is not a comment sets a variable. */
function beginsWithVariable(lines: readonly string[]): boolean {
  const first = lines.find((line) => !/^\s*(?:#.*)?$/.test(line)) ?? '';
  return /^\s*(?:export\s+)?[A-Za-z_][\w.-]*\s*=/.test(first);
}

function formatOf(file: string, first: YamlMap, maps: readonly YamlMap[]): Input['format'] {
  if (manifestsOf(maps).length > 0) return 'manifests';
  if (first.fields.get('services')?.value.kind === 'map') return 'compose';
  if (first.fields.has('domain') || isTree(first)) return 'policy';
  throw new InputError(
    `"${file}" has an unknown format; pass a compose file, Kubernetes manifests, variables (KEY=VALUE lines), ` +
      'or a policy. For a Helm chart, pass its manifests: `helm get manifest <release> > manifest.yaml`',
  );
}

/**
 * Returns whether a mapping without `domain` is a policy. Values of a chart may contain `descriptors`, too, but only
 * with other keys next to it.
 */
function isTree({ fields }: YamlMap): boolean {
  const keys = [...fields.keys()];
  return keys.includes('descriptors') && keys.every((key) => keysOf('file').includes(key));
}

function otherProduct(documents: readonly YamlValue[]): string | undefined {
  const isLimit = (item: YamlValue): boolean =>
    item.kind === 'map' && item.fields.has('namespace') && item.fields.has('max_value');
  if (documents.some((document) => document.kind === 'list' && document.items.some(isLimit)))
    return 'Limitador';
  const manifests = manifestsOf(documents);
  const has = (kind: string, group: string): boolean =>
    manifests.some((one) => one.kind === kind && apiGroup(one).endsWith(group));
  if (has('Limitador', 'kuadrant.io')) return 'Limitador';
  if (has('RateLimit', 'getambassador.io')) return 'Emissary';
  return has('RateLimitConfig', 'ratelimit.solo.io') ? 'Gloo' : undefined;
}

function apiGroup({ fields }: Manifest): string {
  return textAt(fields, 'apiVersion').replace(/\/.*$/, '');
}
