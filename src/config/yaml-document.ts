import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { type Position, type ProblemList, WHOLE_FILE } from './config-problem.js';
import { nestingBound } from './nesting.js';

/**
 * A YAML document as the policy reader wants it: every value knows where it stands, scalars keep their source text (`007`,
 * `yes` and `0x1F` stay what they look like, as in envoyproxy/ratelimit), aliases and merge keys are resolved.
 */
export type YamlValue = YamlScalar | YamlMap | YamlList;

export interface YamlScalar {
  readonly kind: 'scalar';
  /** The text as written, without quotes and escapes. */
  readonly text: string;
  /** Unquoted: may be read as a number, a boolean or nothing at all. */
  readonly plain: boolean;
  readonly at: Position;
}

export interface YamlField {
  readonly key: string;
  readonly keyAt: Position;
  readonly value: YamlValue;
}

export interface YamlMap {
  readonly kind: 'map';
  readonly fields: ReadonlyMap<string, YamlField>;
  readonly at: Position;
}

export interface YamlList {
  readonly kind: 'list';
  readonly items: readonly YamlValue[];
  readonly at: Position;
}

/** Largest file read, in bytes: four times what a Kubernetes ConfigMap or Secret can hold; about a second of parsing. */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Most values that aliases and merge keys of one file may add: stops documents that expand without end. */
export const MAX_ALIAS_VALUES = 100_000;
/** Deepest nesting of mappings and lists; real policies have less than twenty. */
export const MAX_DEPTH = 200;
/** Most syntax errors reported for one file: one missing quote can cause hundreds. */
const MAX_SYNTAX_ERRORS = 20;
const TOO_DEEP = `the file nests more than ${MAX_DEPTH} levels; flatten it`;

/** Plain scalars that stand for "nothing here" (YAML 1.1, https://yaml.org/type/null.html). */
const NULL_TEXTS: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL']);

/** Whether the value is an unquoted null: the field counts as absent. */
export function isNull(value: YamlValue): boolean {
  return value.kind === 'scalar' && value.plain && NULL_TEXTS.has(value.text);
}

/**
 * Parses the first document of a file. Reports every syntax error into `problems` and returns undefined if there is one; a
 * file without any content is an error too. With `secret`, messages never repeat keys of the file.
 */
export function parseYaml(
  bytes: Uint8Array,
  problems: ProblemList,
  options: { readonly secret: boolean } = { secret: false },
): YamlValue | undefined {
  const text = decodeText(bytes, problems);
  if (text === undefined) return undefined;
  const lines = new LineCounter();
  // The failsafe schema reads every scalar as text; unique keys are checked here, in linear time.
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'failsafe',
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: 'error',
    lineCounter: lines,
  });
  const errors = document.errors.filter((error) => error.code !== 'MULTIPLE_DOCS');
  for (const error of errors.slice(0, MAX_SYNTAX_ERRORS)) {
    problems.error(positionOf(lines, error.pos[0]), '', syntaxSentence(error, options.secret));
  }
  if (errors.length > 0) return undefined;
  const rest = document.errors.find((error) => error.code === 'MULTIPLE_DOCS');
  if (rest !== undefined) {
    problems.warn(
      positionOf(lines, rest.pos[0]),
      '',
      'only the first document of a file is read; move the documents after this line to files of their own',
    );
  }
  const converter = new Converter(lines, problems, options.secret);
  const value = document.contents === null ? undefined : converter.convert(document.contents, '', 0);
  if (problems.errors.length > 0) return undefined;
  if (value === undefined || isNull(value)) {
    const remedy = options.secret
      ? 'write {} for a table without keys'
      : 'write the policy into it or remove it';
    problems.error(WHOLE_FILE, '', `the file is empty; ${remedy}`);
    return undefined;
  }
  return value;
}

/** Bytes to text; reports what can be no YAML text. */
function decodeText(bytes: Uint8Array, problems: ProblemList): string | undefined {
  if (bytes.length > MAX_FILE_BYTES) {
    problems.error(
      WHOLE_FILE,
      '',
      `the file has ${bytes.length} bytes, the most is ${MAX_FILE_BYTES}; split it into several files`,
    );
    return undefined;
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    problems.error(WHOLE_FILE, '', 'the file is not UTF-8 text; save it as UTF-8');
    return undefined;
  }
  if (text.includes('\0')) {
    problems.error(WHOLE_FILE, '', 'the file is binary; a policy is a YAML text');
    return undefined;
  }
  if (nestingBound(text, MAX_DEPTH) > MAX_DEPTH) {
    problems.error(WHOLE_FILE, '', TOO_DEEP);
    return undefined;
  }
  return text;
}

function syntaxSentence(error: { readonly code: string; readonly message: string }, secret: boolean): string {
  const line = error.message.split('\n', 1)[0] as string;
  const detail = secret ? error.code : line.slice(0, 200);
  return `this is not valid YAML: ${detail}`;
}

function positionOf(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/** Turns the parser's nodes into values of this module. */
class Converter {
  private readonly lines: LineCounter;
  private readonly problems: ProblemList;
  private readonly secret: boolean;
  /** Anchored nodes by name, in document order: an alias means the latest one before it (YAML 1.2, 7.1). */
  private readonly anchors = new Map<string, Node>();
  /** Nodes being converted, to find an alias to its own ancestor. */
  private readonly open = new Set<Node>();
  private aliasDepth = 0;
  private aliasValues = 0;
  private gaveUp = false;

  constructor(lines: LineCounter, problems: ProblemList, secret: boolean) {
    this.lines = lines;
    this.problems = problems;
    this.secret = secret;
  }

  convert(node: unknown, path: string, depth: number): YamlValue {
    const at = this.positionOf(node);
    if (this.gaveUp) return nothing(at);
    if (depth > MAX_DEPTH) {
      this.giveUp(at, path, TOO_DEEP);
      return nothing(at);
    }
    if (this.aliasDepth > 0 && ++this.aliasValues > MAX_ALIAS_VALUES) {
      this.giveUp(at, path, `aliases expand to more than ${MAX_ALIAS_VALUES} values; write fewer aliases`);
      return nothing(at);
    }
    if (isAlias(node)) return this.convertAlias(node, path, depth);
    if (isScalar(node)) {
      this.remember(node);
      const quoted = node.type !== 'PLAIN' || node.tag === 'tag:yaml.org,2002:str';
      return { kind: 'scalar', text: node.source ?? String(node.value ?? ''), plain: !quoted, at };
    }
    if (isMap(node) || isSeq(node)) {
      this.remember(node);
      this.open.add(node);
      const value: YamlValue = isMap(node)
        ? { kind: 'map', fields: this.convertFields(node.items, path, depth), at }
        : {
            kind: 'list',
            items: node.items.map((item, i) => this.convert(item, `${path}[${i}]`, depth + 1)),
            at,
          };
      this.open.delete(node);
      return value;
    }
    return nothing(at);
  }

  private convertAlias(node: Node & { source: string }, path: string, depth: number): YamlValue {
    const at = this.positionOf(node);
    const target = this.anchors.get(node.source);
    if (target === undefined) {
      this.problems.error(
        at,
        path,
        `there is no anchor "&${node.source}" before this alias; define it first`,
      );
      return nothing(at);
    }
    if (this.open.has(target)) {
      this.problems.error(at, path, `the alias "*${node.source}" stands inside its own anchor; remove it`);
      return nothing(at);
    }
    this.aliasDepth++;
    const value = this.convert(target, path, depth);
    this.aliasDepth--;
    return value;
  }

  private convertFields(pairs: readonly unknown[], path: string, depth: number): Map<string, YamlField> {
    const fields = new Map<string, YamlField>();
    const merges: YamlValue[] = [];
    pairs.forEach((pair, index) => {
      if (!isPair(pair) || this.gaveUp) return;
      const key = this.convert(pair.key, path, depth + 1);
      if (key.kind !== 'scalar') {
        this.problems.error(
          key.at,
          path,
          'a key of a mapping must be a text; put the mapping or list elsewhere',
        );
        return;
      }
      const childPath = this.secret ? `${path}[${index}]` : joinPath(path, key.text);
      const value = pair.value === null ? nothing(key.at) : this.convert(pair.value, childPath, depth + 1);
      if (key.plain && key.text === '<<') {
        merges.push(value);
      } else if (fields.has(key.text)) {
        const name = this.secret ? 'this key' : `the key "${key.text}"`;
        this.problems.error(key.at, childPath, `${name} stands twice in one mapping; remove one of the two`);
      } else {
        fields.set(key.text, { key: key.text, keyAt: key.at, value });
      }
    });
    for (const merge of merges) this.merge(merge, fields, path);
    return fields;
  }

  /** A merge key adds what the mapping does not say itself; of several sources the earlier wins (YAML 1.1 merge type). */
  private merge(source: YamlValue, fields: Map<string, YamlField>, path: string): void {
    const sources = source.kind === 'list' ? source.items : [source];
    for (const item of sources) {
      if (item.kind !== 'map') {
        this.problems.error(
          item.at,
          joinPath(path, '<<'),
          'a merge key takes a mapping or a list of mappings',
        );
        continue;
      }
      for (const field of item.fields.values()) if (!fields.has(field.key)) fields.set(field.key, field);
    }
  }

  private remember(node: Node & { anchor?: string }): void {
    // Only where the anchor is defined: an expansion must not bring an old definition of a name back.
    if (this.aliasDepth === 0 && node.anchor !== undefined) this.anchors.set(node.anchor, node);
  }

  private giveUp(at: Position, path: string, message: string): void {
    this.gaveUp = true;
    this.problems.error(at, path, message);
  }

  private positionOf(node: unknown): Position {
    const range = (node as { range?: readonly number[] } | null)?.range;
    return positionOf(this.lines, range?.[0] ?? 0);
  }
}

function nothing(at: Position): YamlScalar {
  return { kind: 'scalar', text: '', plain: true, at };
}

/** Appends a key to a path in the document; keys that are no plain words are quoted. */
export function joinPath(path: string, key: string): string {
  if (!/^[\w.<-]+$/.test(key)) return `${path}[${JSON.stringify(key.slice(0, 60))}]`;
  return path === '' ? key : `${path}.${key}`;
}
