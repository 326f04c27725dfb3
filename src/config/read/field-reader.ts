import { nearest } from '../../runtime/nearest-name.js';
import type { RemovedKey } from '../../runtime/removed-names.js';
import { safePrefix } from '../../runtime/shown-address.js';
import { MAX_PROBLEMS, type Position, type ProblemList } from '../yaml/config-problem.js';
import {
  isNull,
  joinPath,
  type YamlField,
  type YamlList,
  type YamlMap,
  type YamlValue,
} from '../yaml/yaml-document.js';
import { MAX_INT64, readPlain } from '../yaml/yaml-value.js';
import { notScalar, readScalar, type ScalarKind, type ScalarValue } from './scalar-kinds.js';

/** Matches a key that begins with a space copied from a web page, which looks like indentation. */
const ODD_SPACE = /^[\u00a0\u2000-\u200b\u3000]/;

/** A value that is present and not null, with its position in the document. */
export interface Located<T> {
  readonly value: T;
  readonly at: Position;
  readonly path: string;
}

/** Properties of a format's keys that hold in all its mappings. */
export interface Vocabulary {
  /** The mapping that a misplaced key belongs to, for the remedy: "it belongs in a descriptor". */
  readonly correctMappings: ReadonlyMap<string, string>;
  /** Reports errors in the value of a misplaced field at `path`, which is otherwise ignored. */
  readonly checkIgnored: (field: YamlField, path: string, problems: ProblemList) => void;
  /** Keys that the format had in an earlier version. */
  readonly removed: ReadonlyMap<string, RemovedKey>;
}

/** Vocabulary of a format without misplaced keys. */
const NO_VOCABULARY: Vocabulary = {
  correctMappings: new Map(),
  checkIgnored: () => {},
  removed: new Map(),
};

/**
 * Reads the fields of one mapping by name and type. Problems are added to the list and the method returns undefined, so
 * that the caller continues and finds the other problems. A null field counts as absent, as in envoyproxy/ratelimit.
 */
export class FieldReader {
  readonly map: YamlMap;
  readonly path: string;
  readonly problems: ProblemList;
  readonly vocabulary: Vocabulary;
  /** Keys with errors. Created on demand, because most mappings have none. */
  #bad: Set<string> | undefined;

  /**
   * `path` is the path of the mapping in its document, '' for the document itself. Readers of nested mappings use the
   * same vocabulary.
   */
  constructor(map: YamlMap, path: string, problems: ProblemList, vocabulary: Vocabulary = NO_VOCABULARY) {
    this.map = map;
    this.path = path;
    this.problems = problems;
    this.vocabulary = vocabulary;
  }

  /**
   * Reports every key that is not in `known`, without repeating keys that may be secret. A key of `elsewhere` belongs
   * to another mapping and is ignored, so it only causes a warning. `refused` has the error message for some keys.
   */
  expectKeys(
    known: readonly string[],
    elsewhere: ReadonlyMap<string, string> = new Map(),
    refused: ReadonlyMap<string, string> = new Map(),
  ): void {
    for (const field of this.map.fields.values()) {
      if (known.includes(field.key)) continue;
      const path = field.shown ? joinPath(this.path, field.key) : `${this.path}[${field.index}]`;
      const removed = field.shown ? this.vocabulary.removed.get(field.key) : undefined;
      if (removed?.effect === 'ignored') {
        this.problems.warn(field.keyAt, path, removed.sentence);
        continue;
      }
      if (removed !== undefined) {
        this.problems.refuse(field.keyAt, path, removed.sentence);
        continue;
      }
      const refusal = refused.get(field.key);
      if (refusal !== undefined) {
        this.problems.error(field.keyAt, path, refusal);
        continue;
      }
      const place = elsewhere.get(field.key);
      if (place !== undefined) {
        this.problems.warn(field.keyAt, path, `"${field.key}" has no effect here; it belongs ${place}`);
        this.vocabulary.checkIgnored(field, path, this.problems);
        continue;
      }
      const name = field.shown ? ` "${safePrefix(field.key)}"` : ' (not shown, because it may be a secret)';
      // Later problems are only counted, and comparing names is most of the work.
      const isKept = this.problems.errorCount < MAX_PROBLEMS;
      const remedy = isKept ? this.remedyFor(field.key, known, elsewhere) : '';
      this.problems.error(field.keyAt, path, `unknown key${name}; ${remedy}`);
    }
  }

  /**
   * Returns the remedy for an unknown key. Similar keys of this mapping take precedence over keys of other mappings.
   */
  private remedyFor(key: string, known: readonly string[], elsewhere: ReadonlyMap<string, string>): string {
    const { correctMappings } = this.vocabulary;
    const home = correctMappings.get(key);
    if (home !== undefined) return `it belongs ${home}`;
    const [word = ''] = key.split(':', 1);
    if (word !== key && known.includes(word)) return `write a space after the colon, as in "${word}: …"`;
    if (ODD_SPACE.test(key))
      return (
        'it begins with a character that looks like a space but is not one in YAML (U+00A0 or similar); ' +
        'use plain spaces'
      );
    const near = nearest(key, known);
    if (near !== undefined) return `did you mean "${near}"?`;
    const far = nearest(key, [...correctMappings.keys(), ...elsewhere.keys()]);
    const place = far === undefined ? undefined : (correctMappings.get(far) ?? elsewhere.get(far));
    if (place !== undefined) return `did you mean "${far}"? It belongs ${place}`;
    return `the keys allowed here are ${known.join(', ')}`;
  }

  /** Tells whether the field is present, even if it is null. */
  has(key: string): boolean {
    return this.map.fields.has(key);
  }

  /** Returns the field, unless it is absent or null. */
  field(key: string): YamlField | undefined {
    const field = this.map.fields.get(key);
    return field === undefined || isNull(field.value) ? undefined : field;
  }

  pathOf(key: string): string {
    return joinPath(this.path, key);
  }

  /** The position of a field's value, or else of the mapping. */
  at(key: string): Position {
    return this.map.fields.get(key)?.value.at ?? this.map.at;
  }

  /** Reports an error about the value of a key, or about a missing key. */
  error(key: string, message: string): void {
    this.#bad ??= new Set();
    this.#bad.add(key);
    this.problems.error(this.at(key), this.pathOf(key), message);
  }

  /** Tells whether this reader has reported an error about the key, so that its value means nothing. */
  isBad(key: string): boolean {
    return this.#bad?.has(key) === true;
  }

  warn(key: string, message: string): void {
    this.problems.warn(this.at(key), this.pathOf(key), message);
  }

  /** Reads a string. Numbers and other scalars are read as written. */
  text(key: string): string | undefined {
    return this.scalar(key, { kind: 'text' });
  }

  /**
   * Reads a string of envoyproxy/ratelimit's format. Rejects unquoted numbers with a fraction or more than 63 bits,
   * such as `value: 1.10`, as envoyproxy/ratelimit does. `instead` is the remedy for a list or a mapping.
   */
  name(key: string, instead?: string): string | undefined {
    const value = this.field(key)?.value;
    // Do not repeat the text, which may be a credential.
    if (value?.kind === 'scalar' && value.plain && isAmbiguousNumber(value.text)) {
      this.error(
        key,
        `"${key}" has an unquoted value, which YAML reads as a number; put the value in quotes`,
      );
    }
    const quotes = value?.kind === 'scalar' && value.plain ? typographicQuotes(value.text) : undefined;
    if (quotes !== undefined) {
      const [first, last] = quotes;
      this.warn(
        key,
        `"${key}" begins with ${first} and ends with ${last}, which YAML treats as part of the text; use straight ` +
          'quotes (") instead, or quote the whole text if requests contain these characters',
      );
    }
    return this.scalar(key, { kind: 'text' }, instead);
  }

  /** Reads a single value of a kind; see {@link readScalar}. `instead` is the remedy for a list or a mapping. */
  scalar<const Kind extends ScalarKind>(
    key: string,
    kind: Kind,
    instead?: string,
  ): ScalarValue<Kind> | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind !== 'scalar') {
      this.error(key, notScalar(kind, key, kindName(field.value), instead));
      return undefined;
    }
    const read = readScalar(kind, field.value, key);
    if (read.problem !== undefined) {
      this.error(key, read.problem);
      return undefined;
    }
    if (read.warning !== undefined) this.warn(key, read.warning);
    return read.value;
  }

  /** Reads `true` or `false` in any spelling of YAML 1.1. */
  boolean(key: string): boolean | undefined {
    return this.scalar(key, { kind: 'flag' });
  }

  /** Reads one of several words; see {@link WordKind.meaning}. */
  choice<T extends string>(key: string, words: readonly T[], meaning?: string): T | undefined {
    const word = this.scalar(key, { kind: 'word', words, ...(meaning !== undefined && { meaning }) });
    return words.find((one) => one === word);
  }

  /** Reads a mapping. Returns a reader for it. `instead` is the remedy for another value. */
  mapping(key: string, instead = 'write its keys below it'): FieldReader | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind === 'map') return this.below(field.value, this.pathOf(key));
    this.error(key, `"${key}" must be a mapping, not a ${kindName(field.value)}; ${instead}`);
    return undefined;
  }

  /** Reads a list. `what` names its items in the message. */
  list(key: string, what: string): YamlList | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind === 'list') return field.value;
    this.error(key, `"${key}" must be a list of ${what}; begin each item with "- "`);
    return undefined;
  }

  /** Reads a list of mappings. Returns a reader for each. `first` is the key that items begin with. */
  mappings(key: string, what: string, first?: string): readonly FieldReader[] {
    const readers: FieldReader[] = [];
    this.list(key, what)?.items.forEach((item, i) => {
      const path = `${this.pathOf(key)}[${i}]`;
      if (item.kind === 'map') readers.push(this.below(item, path));
      else
        this.problems.error(
          item.at,
          path,
          `each item of "${key}" must be a mapping, not a ${kindName(item)}; begin it with ` +
            (first === undefined ? 'a key and a colon' : `"- ${first}: "`),
        );
    });
    return readers;
  }

  /** Reads a list of strings. */
  texts(key: string, what: string): readonly Located<string>[] {
    const texts: Located<string>[] = [];
    this.list(key, what)?.items.forEach((item, i) => {
      const path = `${this.pathOf(key)}[${i}]`;
      if (item.kind === 'scalar' && item.text !== '' && !isNull(item))
        texts.push({ value: item.text, at: item.at, path });
      else this.problems.error(item.at, path, `each item of "${key}" must be a non-empty string`);
    });
    return texts;
  }

  private below(map: YamlMap, path: string): FieldReader {
    return new FieldReader(map, path, this.problems, this.vocabulary);
  }
}

/** Names the kind of a value in messages: `mapping`, `list` or `single value`. */
export function kindName(value: YamlValue): string {
  return value.kind === 'map' ? 'mapping' : value.kind === 'list' ? 'list' : 'single value';
}

const TYPOGRAPHIC_QUOTES =
  '\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb\u2039\u203a\uff02\uff07';

function typographicQuotes(text: string): readonly [first: string, last: string] | undefined {
  const [first, last] = [text.charAt(0), text.charAt(text.length - 1)];
  if (text.length < 2 || !TYPOGRAPHIC_QUOTES.includes(first) || !TYPOGRAPHIC_QUOTES.includes(last))
    return undefined;
  return [first, last];
}

/** Tells whether YAML reads the unquoted text as a number with a fraction or with more than 63 bits. */
export function isAmbiguousNumber(text: string): boolean {
  const plain = readPlain(text);
  return plain.kind === 'float' || (plain.kind === 'integer' && plain.value > MAX_INT64);
}
