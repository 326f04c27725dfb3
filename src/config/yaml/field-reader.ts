import { nearest } from '../../nearest-name.js';
import type { RemovedKey } from '../../runtime/removed-names.js';
import { shownStart } from '../../runtime/shown-address.js';
import { MAX_PROBLEMS, type Position, type ProblemList } from './config-problem.js';
import {
  isNull,
  joinPath,
  type YamlField,
  type YamlList,
  type YamlMap,
  type YamlValue,
} from './yaml-document.js';
import { MAX_INT64, readPlain } from './yaml-scalar.js';

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
  /** Keys that cause a warning if they are empty. */
  readonly neverEmpty: ReadonlySet<string>;
  /** Reports errors in the value of a misplaced field at `path`, which is otherwise ignored. */
  readonly checkIgnored: (field: YamlField, path: string, problems: ProblemList) => void;
  /** Keys that the format had in an earlier version. */
  readonly removed: ReadonlyMap<string, RemovedKey>;
}

/** Vocabulary of a format without misplaced keys. */
const NO_VOCABULARY: Vocabulary = {
  correctMappings: new Map(),
  neverEmpty: new Set(),
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
      if (known.includes(field.key)) {
        if (this.vocabulary.neverEmpty.has(field.key) && isNull(field.value)) {
          this.warn(
            field.key,
            `"${field.key}" is empty and is ignored; write a value after it, or remove the key`,
          );
        }
        continue;
      }
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
      const name = field.shown ? ` "${shownStart(field.key)}"` : ' (not shown, because it may be a secret)';
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

  /** Returns the position of a field's value, or else of the mapping. */
  at(key: string): Position {
    return this.map.fields.get(key)?.value.at ?? this.map.at;
  }

  error(key: string, message: string): void {
    this.problems.error(this.at(key), this.pathOf(key), message);
  }

  warn(key: string, message: string): void {
    this.problems.warn(this.at(key), this.pathOf(key), message);
  }

  /** Reads a string. Numbers and other scalars are read as written. */
  text(key: string): string | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind === 'scalar') return field.value.text;
    this.error(key, `"${key}" must be a string, not a ${kindName(field.value)}; write a single string`);
    return undefined;
  }

  /**
   * Reads a string of envoyproxy/ratelimit's format. Rejects unquoted numbers with a fraction or more than 63 bits,
   * such as `value: 1.10`, as envoyproxy/ratelimit does.
   */
  name(key: string): string | undefined {
    const value = this.field(key)?.value;
    // Do not repeat the text, which may be a credential.
    if (value?.kind === 'scalar' && value.plain && isAmbiguousNumber(value.text)) {
      const reason =
        value.tag === undefined
          ? 'an unquoted value, which YAML reads as a number; put the value in quotes'
          : `the tag ${value.tag}, so YAML reads its value as a number; remove the tag, and put the value in quotes`;
      this.error(key, `"${key}" has ${reason}`);
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
    return this.text(key);
  }

  /** Reads `true` or `false` in any spelling of YAML 1.1. */
  boolean(key: string): boolean | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    const { value } = field;
    if (value.kind === 'scalar' && value.plain) {
      const plain = readPlain(value.text);
      if (plain.kind === 'boolean') return plain.value;
    }
    this.error(key, `"${key}" is ${found(value)}; write true or false${unquoted(value)}`);
    return undefined;
  }

  /**
   * Reads an integer from `min` to `max`. `less` is added to the message for a smaller number, and for words that mean
   * no limit.
   */
  integer(key: string, min: number, max: number, less?: string): number | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    const { value } = field;
    const plain = value.kind === 'scalar' && value.plain ? readPlain(value.text) : undefined;
    const number = plain?.kind === 'integer' ? plain.value : undefined;
    if (number === undefined || number < BigInt(min) || number > BigInt(max)) {
      const meant = value.kind === 'scalar' ? meantNumber(value.text) : undefined;
      const isMeant = meant !== undefined && meant >= min && meant <= max;
      const remedy = `write ${isMeant ? meant : `a whole number from ${min} to ${max}`}${unquoted(value)}`;
      const isLess = number !== undefined && number < BigInt(min);
      const isNone = value.kind === 'scalar' && NO_LIMIT.test(value.text);
      const hint = less !== undefined && (isLess || isNone) ? `, ${less}` : '';
      this.error(key, `"${key}" is ${found(value)}; ${remedy}${hint}`);
      return undefined;
    }
    this.warnOfOctal(key, number);
    return Number(number);
  }

  /**
   * Reads a number from `min` to `max`, with or without decimals. `example` is added to the message for other values.
   */
  number(key: string, min: number, max: number, example?: string): number | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    const { value } = field;
    const plain = value.kind === 'scalar' && value.plain ? readPlain(value.text) : undefined;
    const number = plain?.kind === 'integer' || plain?.kind === 'float' ? Number(plain.value) : Number.NaN;
    if (!(number >= min && number <= max)) {
      const bounds = `${min < 1e-3 && min > 0 ? min.toFixed(6) : min} to ${max}`;
      const hint = example === undefined ? '' : `, ${example}`;
      const remedy = `write a number from ${bounds}${hint}${unquoted(value)}`;
      this.error(key, `"${key}" is ${found(value)}; ${remedy}`);
      return undefined;
    }
    if (plain?.kind === 'integer') this.warnOfOctal(key, plain.value);
    return number;
  }

  private warnOfOctal(key: string, number: bigint): void {
    const value = this.field(key)?.value;
    if (value?.kind !== 'scalar' || !/^[+-]?0[0-9_]/.test(value.text)) return;
    this.warn(
      key,
      `YAML reads "${value.text}" as an octal number, which is ${number} in decimal; write the number ` +
        'without the leading 0',
    );
  }

  /** Reads one of several words. `meaning` explains them if no word is similar to the value. */
  choice<T extends string>(key: string, choices: readonly T[], meaning?: string): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    const near = nearest(text, choices);
    const help = meaning === undefined ? '' : `; ${meaning}`;
    const hint = near === undefined ? help : `; did you mean "${near}"?`;
    const wrong =
      choices.length === 1
        ? `not a valid value; write ${choices[0]}`
        : `not one of ${choices.join(', ')}${hint}`;
    this.error(key, `"${shownStart(text)}" is ${wrong}`);
    return undefined;
  }

  /** Reads a mapping. Returns a reader for it. */
  mapping(key: string): FieldReader | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind === 'map') return this.below(field.value, this.pathOf(key));
    this.error(key, `"${key}" must be a mapping, not a ${kindName(field.value)}; write its keys below it`);
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

/** Returns the kind of a value for messages: `mapping`, `list` or `single value`. */
export function kindName(value: YamlValue): string {
  return value.kind === 'map' ? 'mapping' : value.kind === 'list' ? 'list' : 'single value';
}

/** Describes a value in place of a number or boolean: `-10`, `"many"`, `the string "5"`, `a list`. */
function found(value: YamlValue): string {
  if (value.kind !== 'scalar') return `a ${kindName(value)}`;
  const text = shownStart(value.text);
  if (!value.plain) return `the string "${text}"`;
  return readPlain(value.text).kind === 'text' ? `"${text}"` : text;
}

const NO_LIMIT = /^(?:unlimited|infinite|infinity|\.?inf|none)$/i;

/** Returns the number that people mean by `1,000`, `10k` or `1e3`; undefined for other text. */
function meantNumber(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,3}(?:,\d{3}){1,3}|\d{1,10})(k|e[1-9])?$/i.exec(text) ?? [];
  if (digits === '') return undefined;
  const zeros = unit === '' ? 0 : unit.toLowerCase() === 'k' ? 3 : Number(unit.slice(1));
  return Number(digits.replaceAll(',', '')) * 10 ** zeros;
}

/** Returns the end of a remedy if the quotes are the mistake, or a part of it. */
function unquoted(value: YamlValue): string {
  return value.kind === 'scalar' && !value.plain ? ', without quotes' : '';
}

const TYPOGRAPHIC_QUOTES =
  '\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb\u2039\u203a\uff02\uff07';

/** Returns the typographic quotes around a string; undefined if it has none. */
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
