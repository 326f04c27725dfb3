import { nearest } from '../../nearest-name.js';
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

/** A key begins so that was copied from a page: spaces that look like those of an indentation. */
const ODD_SPACE = /^[\u00a0\u2000-\u200b\u3000]/;

/** A value that is present and not null, with its place in the document. */
export interface Located<T> {
  readonly value: T;
  readonly at: Position;
  readonly path: string;
}

/** What a format knows of its keys beyond those of the mapping at hand. */
export interface Vocabulary {
  /**
   * Where keys belong that stand where they are not known: the remedy of that error, as in "it belongs in a
   * descriptor".
   */
  readonly homes: ReadonlyMap<string, string>;
  /** Keys that are warned about when they are empty. */
  readonly neverEmpty: ReadonlySet<string>;
  /** Reports what is wrong below a field that stands elsewhere than it belongs, at `path`, and is ignored. */
  readonly checkIdle: (field: YamlField, path: string, problems: ProblemList) => void;
}

/** Of a format whose keys have one place each. */
const NO_VOCABULARY: Vocabulary = { homes: new Map(), neverEmpty: new Set(), checkIdle: () => {} };

/**
 * Reads the fields of one mapping by name and type. Whatever is wrong goes into the problem list, and the reader
 * answers undefined, so that the caller goes on and finds the rest. A field that is null counts as absent, as in
 * envoyproxy/ratelimit.
 */
export class FieldReader {
  readonly map: YamlMap;
  readonly path: string;
  readonly problems: ProblemList;
  private readonly vocabulary: Vocabulary;

  /**
   * `path`: where the mapping stands in its document, '' for the document itself. Readers of mappings below have the
   * same vocabulary.
   */
  constructor(map: YamlMap, path: string, problems: ProblemList, vocabulary: Vocabulary = NO_VOCABULARY) {
    this.map = map;
    this.path = path;
    this.problems = problems;
    this.vocabulary = vocabulary;
  }

  /**
   * Reports every key that is not in `known`; keys that may be secrets are not repeated. A key of `elsewhere` has its
   * place in another mapping and is ignored here, so it is only warned about. Of a key of `refused` its text is the
   * error.
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
      const refusal = refused.get(field.key);
      if (refusal !== undefined) {
        this.problems.error(field.keyAt, path, refusal);
        continue;
      }
      const place = elsewhere.get(field.key);
      if (place !== undefined) {
        this.problems.warn(field.keyAt, path, `"${field.key}" has no effect here; it belongs ${place}`);
        this.vocabulary.checkIdle(field, path, this.problems);
        continue;
      }
      const name = field.shown ? ` "${field.key.slice(0, 60)}"` : ' (not shown, as it may be a secret)';
      // Beyond so many nobody reads it, and comparing names is most of the work.
      const isKept = this.problems.errorCount < MAX_PROBLEMS;
      const remedy = isKept ? this.remedyFor(field.key, known, elsewhere) : '';
      this.problems.error(field.keyAt, path, `unknown key${name}; ${remedy}`);
    }
  }

  /** What to do about a key that is not known here: keys of this mapping go before those of others. */
  private remedyFor(key: string, known: readonly string[], elsewhere: ReadonlyMap<string, string>): string {
    const { homes } = this.vocabulary;
    const home = homes.get(key);
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
    const far = nearest(key, [...homes.keys(), ...elsewhere.keys()]);
    const place = far === undefined ? undefined : (homes.get(far) ?? elsewhere.get(far));
    if (place !== undefined) return `did you mean "${far}"? It belongs ${place}`;
    return `the keys allowed here are ${known.join(', ')}`;
  }

  /** Whether the field is written, null included. */
  has(key: string): boolean {
    return this.map.fields.has(key);
  }

  /** The field, unless absent or null. */
  field(key: string): YamlField | undefined {
    const field = this.map.fields.get(key);
    return field === undefined || isNull(field.value) ? undefined : field;
  }

  pathOf(key: string): string {
    return joinPath(this.path, key);
  }

  /** Where to point for a field: its value, else the mapping. */
  at(key: string): Position {
    return this.map.fields.get(key)?.value.at ?? this.map.at;
  }

  error(key: string, message: string): void {
    this.problems.error(this.at(key), this.pathOf(key), message);
  }

  warn(key: string, message: string): void {
    this.problems.warn(this.at(key), this.pathOf(key), message);
  }

  /** A text; numbers and the like are taken as they are written. */
  text(key: string): string | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind === 'scalar') return field.value.text;
    this.error(key, `"${key}" must be a text, not a ${kindName(field.value)}; write a single text`);
    return undefined;
  }

  /**
   * A text of envoyproxy/ratelimit's format. It refuses what YAML takes for a number with a fraction or of more than 63
   * bits, as in `value: 1.10`.
   */
  name(key: string): string | undefined {
    const value = this.field(key)?.value;
    // The text is not repeated: it may be the value of a credential.
    if (value?.kind === 'scalar' && value.plain && isOddNumber(value.text)) {
      const reason =
        value.tag === undefined
          ? 'no quotes, so YAML reads it as a number; put it in quotes'
          : `the tag ${value.tag}, so YAML reads it as a number; remove the tag, and put the text in quotes`;
      this.error(key, `"${key}" has ${reason}`);
    }
    const quotes = value?.kind === 'scalar' && value.plain ? typographicQuotes(value.text) : undefined;
    if (quotes !== undefined) {
      const [first, last] = quotes;
      this.warn(
        key,
        `"${key}" begins with ${first} and ends with ${last}, which YAML does not treat as quotes but ` +
          'as part of the text; use straight quotes (") instead, or put straight quotes around them if ' +
          'requests contain them too',
      );
    }
    return this.text(key);
  }

  /** `true` or `false`, in all the spellings of YAML 1.1. */
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

  /** A whole number from `min` to `max`; `less` is said, too, of a number below and of words for no limit. */
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

  /** A number from `min` to `max`, decimals allowed; `example` is said to whoever wrote another. */
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
    this.warn(key, `"${value.text}" is read as octal, ${number}; write the number without the leading 0`);
  }

  /** One of a few words; `meaning` helps to choose among them where none is near what is written. */
  choice<T extends string>(key: string, choices: readonly T[], meaning?: string): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    const near = nearest(text, choices);
    const help = meaning === undefined ? '' : `; ${meaning}`;
    const hint = near === undefined ? help : `; did you mean "${near}"?`;
    this.error(key, `"${text.slice(0, 60)}" is not one of ${choices.join(', ')}${hint}`);
    return undefined;
  }

  /** A mapping, ready to be read. */
  mapping(key: string): FieldReader | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind === 'map') return this.below(field.value, this.pathOf(key));
    this.error(key, `"${key}" must be a mapping, not a ${kindName(field.value)}; write its keys below it`);
    return undefined;
  }

  /** A list; `what` names its items in the message. */
  list(key: string, what: string): YamlList | undefined {
    const field = this.field(key);
    if (field === undefined) return undefined;
    if (field.value.kind === 'list') return field.value;
    this.error(key, `"${key}" must be a list of ${what}; begin each item with "- "`);
    return undefined;
  }

  /** A list of mappings, each ready to be read; `first` is the key that items begin with. */
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

  /** A list of texts. */
  texts(key: string, what: string): readonly Located<string>[] {
    const texts: Located<string>[] = [];
    this.list(key, what)?.items.forEach((item, i) => {
      const path = `${this.pathOf(key)}[${i}]`;
      if (item.kind === 'scalar' && item.text !== '' && !isNull(item))
        texts.push({ value: item.text, at: item.at, path });
      else this.problems.error(item.at, path, `each item of "${key}" must be a non-empty text`);
    });
    return texts;
  }

  private below(map: YamlMap, path: string): FieldReader {
    return new FieldReader(map, path, this.problems, this.vocabulary);
  }
}

/** `mapping`, `list` or `single value`, as messages say. */
export function kindName(value: YamlValue): string {
  return value.kind === 'map' ? 'mapping' : value.kind === 'list' ? 'list' : 'single value';
}

/** What stands where a number or a switch is asked for: `-10`, `"many"`, `the text "5"`, `a list`. */
function found(value: YamlValue): string {
  if (value.kind !== 'scalar') return `a ${kindName(value)}`;
  const text = value.text.slice(0, 60);
  if (!value.plain) return `the text "${text}"`;
  return readPlain(value.text).kind === 'text' ? `"${text}"` : text;
}

const NO_LIMIT = /^(?:unlimited|infinite|infinity|\.?inf|none)$/i;

/** The number that `1,000`, `10k` and `1e3` are for people; undefined for anything else. */
function meantNumber(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,3}(?:,\d{3}){1,3}|\d{1,10})(k|e[1-9])?$/i.exec(text) ?? [];
  if (digits === '') return undefined;
  const zeros = unit === '' ? 0 : unit.toLowerCase() === 'k' ? 3 : Number(unit.slice(1));
  return Number(digits.replaceAll(',', '')) * 10 ** zeros;
}

/** What a remedy adds where the quotes are the mistake, or a part of it. */
function unquoted(value: YamlValue): string {
  return value.kind === 'scalar' && !value.plain ? ', without quotes' : '';
}

const TYPOGRAPHIC_QUOTES =
  '\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb\u2039\u203a\uff02\uff07';

/** The characters round a text that word processors write for quotes; undefined where it is not in a pair of them. */
function typographicQuotes(text: string): readonly [first: string, last: string] | undefined {
  const [first, last] = [text.charAt(0), text.charAt(text.length - 1)];
  if (text.length < 2 || !TYPOGRAPHIC_QUOTES.includes(first) || !TYPOGRAPHIC_QUOTES.includes(last))
    return undefined;
  return [first, last];
}

/** Whether YAML takes a text without quotes for a number with a fraction, or of more than 63 bits. */
export function isOddNumber(text: string): boolean {
  const plain = readPlain(text);
  return plain.kind === 'float' || (plain.kind === 'integer' && plain.value > MAX_INT64);
}
