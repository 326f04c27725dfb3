import { nearest } from '../../nearest-name.js';
import { type Position, ProblemList, WHOLE_FILE } from '../yaml/config-problem.js';
import { FieldReader, kindName } from '../yaml/field-reader.js';
import { VARIABLE } from '../yaml/syntax-sentences.js';
import { parseYaml, type YamlValue } from '../yaml/yaml-document.js';
import { parseYamlPart, type YamlPart } from '../yaml/yaml-part.js';
import { foreignDocument } from './foreign-document.js';
import { MISPLACED_KEYS, ROOT_KEYS } from './policy-keys.js';
import { POLICY_VOCABULARY } from './policy-vocabulary.js';
import { showDeriveKey } from './read-derive.js';

/** One document of a policy, a file or a resource, whose domain is known; its contents are yet to be read. */
export interface PolicySource {
  /** The file as the user named it, or the resource. */
  readonly file: string;
  /** '' when it is missing or bad, which is reported. */
  readonly domain: string;
  /** Where `domain` stands. */
  readonly domainAt: Position;
  readonly root: FieldReader;
}

/** What became of one document. */
export interface OpenedSource {
  /** Absent when the document is no mapping that could be a policy. */
  readonly source: PolicySource | undefined;
  readonly problems: ProblemList;
  /** The document can be read and is something else than a policy; an error says so. */
  readonly isSomethingElse: boolean;
  /** It is a key table then. */
  readonly isKeyTable: boolean;
}

/** Opens a policy file: parses the YAML and reads its domain. */
export function openFile(file: string, bytes: Uint8Array): OpenedSource {
  const problems = new ProblemList(file);
  return openValue(parseYaml(bytes, problems, { showKey }), problems);
}

/** Opens a policy that is a text in another document, such as that of a ConfigMap. */
export function openPart(part: YamlPart, problems: ProblemList): OpenedSource {
  return openValue(parseYamlPart(part, problems, { showKey }), problems);
}

/** Opens a document that was parsed elsewhere, such as an xDS resource; `problems` have its name. */
export function openDocument(document: YamlValue, problems: ProblemList): OpenedSource {
  return openValue(document, problems);
}

/** A file that cannot be read, and why. */
export function unreadable(file: string, message: string): OpenedSource {
  const problems = new ProblemList(file);
  problems.error(WHOLE_FILE, '', message);
  return unopened(problems);
}

/** What could not be opened, for the reasons in `problems`. */
export function unopened(problems: ProblemList): OpenedSource {
  return { source: undefined, problems, isSomethingElse: false, isKeyTable: false };
}

/** So many keys of a file that may be no policy are held against those of one. */
const MAX_COMPARED = 100;

function openValue(document: YamlValue | undefined, problems: ProblemList): OpenedSource {
  const nothing = unopened(problems);
  if (document === undefined) return nothing;
  if (document.kind !== 'map') {
    problems.error(
      document.at,
      '',
      `a policy file must be a mapping, not a ${kindName(document)}; begin it with "domain: <name>"`,
    );
    return { ...nothing, isSomethingElse: true };
  }
  const foreign = foreignDocument(document);
  if (foreign !== undefined) {
    problems.error(document.at, '', foreign);
    return { ...nothing, isSomethingElse: true };
  }
  const keys = [...document.fields.keys()];
  const isKnown = (key: string): boolean => ROOT_KEYS.includes(key) || MISPLACED_KEYS.has(key);
  const isNear = (key: string): boolean => nearest(key, ROOT_KEYS) !== undefined;
  if (keys.length > 0 && !keys.some(isKnown) && !keys.slice(0, MAX_COMPARED).some(isNear)) {
    // Perhaps a key table that no policy names: its keys are none to be shown.
    problems.error(
      document.at,
      '',
      'the file is not a policy, because none of its keys are known; begin it with "domain: <name>", or ' +
        'move it elsewhere',
    );
    const isKeyTable = keys.every((key) => /^[0-9a-f]{64}$/i.test(key));
    return { ...nothing, isSomethingElse: true, isKeyTable };
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
 * Looks like the name of a field, mistyped or not: words, which may begin with capitals (`apiVersion`, `Domain`). API
 * keys hold digits or capitals within words, or are longer.
 */
const FIELD_NAME = /^(?=.{1,24}$)(?:[a-z]+|[A-Z][a-z]+)(?:[_-][a-z]+|[_-]?[A-Z][a-z]+)*$/;

/**
 * Keys at the top that are not known may be API keys: the file may be a key table, or a table may lack its indentation.
 * The tree of descriptors holds none, unless a table got into it.
 */
function showKey(path: string, key: string): boolean {
  if (path === '') return FIELD_NAME.test(key);
  return path.startsWith('derive') ? showDeriveKey(path, key) : !/\b(?:derive|sha256)/.test(path);
}

/** `a.yaml:3:5`, or the name alone where no line is known: how a message names a place in another file. */
export function placeName(file: string, at: Position): string {
  return at.line === 0 ? file : `${file}:${at.line}:${at.column}`;
}
