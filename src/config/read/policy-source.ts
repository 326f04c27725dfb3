import { nearest } from '../../runtime/nearest-name.js';
import { REMOVED_POLICY_KEYS } from '../../runtime/removed-names.js';
import { type Position, ProblemList, WHOLE_FILE } from '../yaml/config-problem.js';
import { parseYaml, parseYamlText, type YamlMap, type YamlValue } from '../yaml/yaml-document.js';
import { VARIABLE } from '../yaml/yaml-value.js';
import { FieldReader, isAmbiguousNumber, kindName, type Vocabulary } from './field-reader.js';
import { ALL_KEYS, MISPLACED_KEYS, WEIR_KEYS } from './field-values.js';
import { keysOf } from './policy-fields.js';
import { showDeriveKey } from './read-derive.js';

/** One document of a policy, a file or a resource. Its domain is known, and its contents are not read yet. */
export interface PolicySource {
  /** Name of the file as given by the user, or of the resource. */
  readonly file: string;
  /** The domain, or '' if it is missing or invalid, which is reported. */
  readonly domain: string;
  /** Position of `domain`. */
  readonly domainAt: Position;
  readonly root: FieldReader;
}

/** Result of opening one document. */
export interface OpenedSource {
  /** Absent if the document is not a mapping that could be a policy. */
  readonly source: PolicySource | undefined;
  readonly problems: ProblemList;
  /** Whether the document can be read but is not a policy, which is reported as an error. */
  readonly isNotPolicy: boolean;
  /** Whether such a document is a key table. */
  readonly isKeyTable: boolean;
}

/** Opens a policy file: parses the YAML and reads its domain. */
export function openFile(file: string, bytes: Uint8Array): OpenedSource {
  const problems = new ProblemList(file);
  return openDocument(parseYaml(bytes, problems, { showKey }), problems);
}

/**
 * Opens a policy that is a text in another document, such as a ConfigMap. `placeOf` returns the position in the file of
 * a position in the text.
 */
export function openPart(
  text: string,
  placeOf: (at: Position) => Position,
  problems: ProblemList,
): OpenedSource {
  return openDocument(parseYamlText(text, problems, { showKey, placeOf }), problems);
}

export function unreadable(file: string, message: string): OpenedSource {
  const problems = new ProblemList(file);
  problems.error(WHOLE_FILE, '', message);
  return unopened(problems);
}

export function unopened(problems: ProblemList): OpenedSource {
  return { source: undefined, problems, isNotPolicy: false, isKeyTable: false };
}

/** Maximum number of keys compared to recognize a policy file. */
const MAX_COMPARED = 100;

/** Opens a parsed document, such as an xDS resource; undefined if it could not be parsed. `problems` has its name. */
export function openDocument(document: YamlValue | undefined, problems: ProblemList): OpenedSource {
  const nothing = unopened(problems);
  if (document === undefined) return nothing;
  if (document.kind !== 'map') {
    problems.error(
      document.at,
      '',
      `a policy file must be a mapping, not a ${kindName(document)}; begin it with "domain: <name>"`,
    );
    return { ...nothing, isNotPolicy: true };
  }
  const foreign = foreignDocument(document);
  if (foreign !== undefined) {
    problems.error(document.at, '', foreign);
    return { ...nothing, isNotPolicy: true };
  }
  const keys = [...document.fields.keys()];
  const known = keysOf('file');
  const isKnown = (key: string): boolean => known.includes(key) || MISPLACED_KEYS.has(key);
  const isNear = (key: string): boolean => nearest(key, known) !== undefined;
  if (keys.length > 0 && !keys.some(isKnown) && !keys.slice(0, MAX_COMPARED).some(isNear)) {
    // The file may be a key table that no policy names, so its keys must not be shown.
    problems.error(
      document.at,
      '',
      'the file is not a policy, because none of its keys are known; begin it with "domain: <name>", or ' +
        'move it to another directory',
    );
    const isKeyTable = keys.every((key) => /^[0-9a-f]{64}$/i.test(key));
    return { ...nothing, isNotPolicy: true, isKeyTable };
  }
  const root = new FieldReader(document, '', problems, POLICY_VOCABULARY);
  const domain = root.name('domain') ?? '';
  if (domain === '' && (root.field('domain')?.value.kind ?? 'scalar') === 'scalar') {
    root.error(
      'domain',
      '"domain" is missing or empty; write the domain that Envoy sends, as in domain: shop',
    );
  }
  if (domain.includes('${')) root.warn('domain', VARIABLE);
  return {
    ...unopened(problems),
    source: { file: problems.file, domain, domainAt: root.at('domain'), root },
  };
}

/**
 * Matches names that look like a field, misspelt or not: words that may begin with capitals (`apiVersion`, `Domain`).
 * API keys have digits or capitals within words, or are longer.
 */
const FIELD_NAME = /^(?=.{1,24}$)(?:[a-z]+|[A-Z][a-z]+)(?:[_-][a-z]+|[_-]?[A-Z][a-z]+)*$/;

/**
 * Tells whether messages may show a key. Unknown keys at the top may be API keys, because the file may be a key table
 * or a table may lack its indentation. In the tree of descriptors, an API key can only be part of a misplaced table.
 */
function showKey(path: string, key: string): boolean {
  if (path === '') return FIELD_NAME.test(key);
  return path.startsWith('derive') ? showDeriveKey(path, key) : !/\b(?:derive|sha256)/.test(path);
}

/**
 * Returns how a message names a position in another file: `a.yaml:3:5`, or the file name alone if the line is unknown.
 */
export function placeName(file: string, at: Position): string {
  return at.line === 0 ? file : `${file}:${at.line}:${at.column}`;
}

/** Properties of policy keys that hold in every mapping. */
const POLICY_VOCABULARY: Vocabulary = {
  correctMappings: WEIR_KEYS,
  checkIgnored: ({ key, value }, path, problems) => {
    if (key !== 'metadata') checkIgnored(value, path, problems);
  },
  removed: REMOVED_POLICY_KEYS,
};

/**
 * Checks the value of a misplaced key as envoyproxy/ratelimit does, which checks keys and kinds of values everywhere. A
 * value that it rejects is most likely a mistake.
 */
function checkIgnored(value: YamlValue, path: string, problems: ProblemList): void {
  if (value.kind === 'scalar') {
    if (value.plain && isAmbiguousNumber(value.text)) {
      problems.error(value.at, path, 'without quotes, YAML reads this as a number; put it in quotes');
    }
    return;
  }
  const maps = value.kind === 'map' ? [value] : value.items;
  maps.forEach((map, i) => {
    const mapPath = value.kind === 'map' ? path : `${path}[${i}]`;
    if (map.kind !== 'map') {
      problems.error(
        map.at,
        mapPath,
        `each item of a list must be a mapping, not a ${kindName(map)}; begin it with a key and a colon`,
      );
      return;
    }
    const reader = new FieldReader(map, mapPath, problems, POLICY_VOCABULARY);
    reader.expectKeys(ALL_KEYS);
    for (const field of map.fields.values()) {
      if (!MISPLACED_KEYS.has(field.key) || field.key === 'metadata') continue;
      checkIgnored(field.value, reader.pathOf(field.key), problems);
    }
  });
}

const MOVE_ADVICE = 'move this file out of the policy directory (a policy file begins with "domain: <name>")';

/**
 * Returns the apparent type of a document that is not a policy, and what to do with it; undefined if the type is
 * unknown. The text repeats only the name of a type from the document.
 */
function foreignDocument({ fields }: YamlMap): string | undefined {
  if (fields.has('domain')) return undefined;
  const kind = fields.get('kind')?.value;
  if (fields.has('apiVersion') && kind?.kind === 'scalar' && /^[A-Z][A-Za-z]{1,60}$/.test(kind.text)) {
    const remedy =
      kind.text === 'ConfigMap'
        ? 'mount the ConfigMap as a directory and specify this directory, or save each value under "data" ' +
          'as a separate policy file'
        : MOVE_ADVICE;
    return `this is a Kubernetes ${kind.text}, not a policy; ${remedy}`;
  }
  const other = fields.has('static_resources')
    ? "Envoy's configuration"
    : fields.get('services')?.value.kind === 'map'
      ? 'a Docker Compose file'
      : undefined;
  if (other === undefined) return undefined;
  return `this is ${other}, not a policy; ${MOVE_ADVICE}`;
}
