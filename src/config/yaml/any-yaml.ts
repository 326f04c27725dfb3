import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
} from 'yaml';
import { type Position, type ProblemList, WHOLE_FILE } from './config-problem.js';
import { syntaxProblem, TEMPLATE } from './syntax-sentences.js';
import { MAX_ALIAS_VALUES, MAX_MARKS, MAX_YAML_DEPTH, TOO_DEEP } from './yaml-bounds.js';
import { readTagged } from './yaml-tags.js';
import {
  isNull,
  joinPath,
  type ShowKey,
  type YamlField,
  type YamlScalar,
  type YamlValue,
} from './yaml-value.js';

/** Maximum number of syntax errors reported per file, because one missing quote can cause hundreds. */
const MAX_SYNTAX_ERRORS = 20;

/** Does the same as parseYaml (yaml-document.ts) for every kind of YAML, with the parser of the package `yaml`. */
export function readAnyYaml(
  text: string,
  problems: ProblemList,
  options: { readonly secret?: boolean },
  showKey: ShowKey,
): YamlValue | undefined {
  if (countMarks(text) > MAX_MARKS) {
    const found = `the file has more than ${MAX_MARKS} brackets, commas, colons, dashes and line ends`;
    problems.error(WHOLE_FILE, '', `${found}; split it into several files`);
    return undefined;
  }
  const lines = new LineCounter();
  // The failsafe schema reads every scalar as text. This module reads tags and checks unique keys, in linear time.
  let document: Document.Parsed;
  try {
    document = parseDocument(text, {
      version: '1.2',
      schema: 'failsafe',
      resolveKnownTags: false,
      prettyErrors: false,
      uniqueKeys: false,
      logLevel: 'error',
      lineCounter: lines,
    });
  } catch (error) {
    // The parser nests some invalid lines, such as a series of `* a: b`, deeper than nesting.ts can predict.
    if (!(error instanceof RangeError)) throw error;
    problems.error(WHOLE_FILE, '', TOO_DEEP);
    return undefined;
  }
  const errors = document.errors.filter((error) => error.code !== 'MULTIPLE_DOCS');
  // Later errors on the same line are mostly caused by the first.
  let reportedLine = 0;
  const openings = errors.length > 0 ? openingsByEnd(document) : new Map<number, number>();
  for (const error of errors.slice(0, MAX_SYNTAX_ERRORS)) {
    const line = positionOf(lines, error.pos[0]).line;
    if (line === reportedLine) continue;
    reportedLine = line;
    const { offset, sentence, isLast } = syntaxProblem(
      error,
      text,
      openings.get(error.pos[0]),
      options.secret === true,
    );
    problems.error(positionOf(lines, offset), '', sentence);
    if (isLast) break;
  }
  if (errors.length > 0) return undefined;
  const rest = document.errors.find((error) => error.code === 'MULTIPLE_DOCS');
  if (rest !== undefined) {
    problems.warn(
      positionOf(lines, rest.pos[0]),
      '',
      'only the first document of a file is read; move the documents after this line to separate files',
    );
  }
  const converter = new Converter(text, lines, problems, showKey);
  const value =
    document.contents === null
      ? undefined
      : converter.convert(document.contents, '', 0, options.secret === true);
  if (converter.gaveUp) return undefined;
  if (value === undefined || isNull(value)) {
    // The undefined alias is already reported.
    if (problems.errors.length > 0) return undefined;
    const remedy = options.secret ? 'write {} for a table without keys' : 'add a policy, or remove the file';
    problems.error(WHOLE_FILE, '', `the file is empty; ${remedy}`);
    return undefined;
  }
  return value;
}

/**
 * Returns the start of each quoted text, list and mapping in brackets by its end. An unclosed one ends at its error.
 */
function openingsByEnd(document: Document): ReadonlyMap<number, number> {
  const starts = new Map<number, number>();
  visit(document, {
    Node: (_key, node) => {
      const { range } = node;
      const hasMarks = isScalar(node)
        ? node.type?.startsWith('QUOTE')
        : isMap(node) || isSeq(node)
          ? node.flow
          : false;
      if (range && hasMarks && !starts.has(range[1])) starts.set(range[1], range[0]);
    },
  });
  return starts;
}

/** Counts the characters that can end one YAML node and begin the next, whether quoted or not. */
function countMarks(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (MARKS.has(text.charCodeAt(i))) count++;
  return count;
}

const MARKS: ReadonlySet<number> = new Set([...'[]{},:-?\n\r'].map((mark) => mark.charCodeAt(0)));

function positionOf(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/** Converts the parser's nodes to values of this module. */
class Converter {
  private readonly text: string;
  private readonly lines: LineCounter;
  private readonly problems: ProblemList;
  private readonly showKey: ShowKey;
  /** Anchored nodes by name, in document order. An alias refers to the latest one before it (YAML 1.2, 7.1). */
  private readonly anchors = new Map<string, Node>();
  /** Nodes being converted, to detect an alias to its own ancestor. */
  private readonly open = new Set<Node>();
  private aliasDepth = 0;
  private aliasValues = 0;
  gaveUp = false;
  /** Anchored nodes whose contents must not be shown wherever an alias repeats them. */
  private readonly hidden = new Set<Node>();
  /** Problems that were reported, because the expansion of an alias must not report them again. */
  private readonly reported = new Set<string>();

  constructor(text: string, lines: LineCounter, problems: ProblemList, showKey: ShowKey) {
    this.text = text;
    this.lines = lines;
    this.problems = problems;
    this.showKey = showKey;
  }

  /** `hidden`: no part of the node may be shown. */
  convert(node: unknown, path: string, depth: number, hidden: boolean): YamlValue {
    const at = this.positionOf(node);
    if (this.gaveUp) return nothing(at);
    if (depth > MAX_YAML_DEPTH) {
      this.giveUp(at, path, TOO_DEEP);
      return nothing(at);
    }
    if (this.aliasDepth > 0 && ++this.aliasValues > MAX_ALIAS_VALUES) {
      this.giveUp(at, path, `aliases expand to more than ${MAX_ALIAS_VALUES} values; write fewer aliases`);
      return nothing(at);
    }
    if (isAlias(node)) return this.convertAlias(node, path, depth, hidden);
    if (isScalar(node)) {
      this.remember(node, hidden);
      return this.convertScalar(node, path, at);
    }
    if (isMap(node) && node.flow === true && this.text.startsWith('{{', node.range?.[0])) {
      this.report(at, path, TEMPLATE);
      this.problems.ignorePosition(at);
      return nothing(at);
    }
    if (isMap(node) || isSeq(node)) {
      this.remember(node, hidden || !this.showKey(path, ''));
      this.open.add(node);
      const value: YamlValue = isMap(node)
        ? { kind: 'map', fields: this.convertFields(node.items, path, depth, hidden), at }
        : {
            kind: 'list',
            items: node.items.map((item, i) => this.convert(item, `${path}[${i}]`, depth + 1, hidden)),
            at,
          };
      this.open.delete(node);
      return value;
    }
    return nothing(at);
  }

  private convertScalar(node: Scalar, path: string, at: Position): YamlScalar {
    const text = node.source ?? String(node.value ?? '');
    const isPlain = node.type === 'PLAIN';
    if (node.tag === undefined) return { kind: 'scalar', text, plain: isPlain, at };
    const tagged = readTagged(node.tag, text, isPlain);
    if ('tagMismatch' in tagged) {
      this.report(at, path, tagged.tagMismatch);
      this.problems.ignorePosition(at);
      return { kind: 'scalar', text, plain: false, at };
    }
    const { warning, ...said } = tagged;
    if (warning !== undefined) this.warn(at, path, warning);
    return { kind: 'scalar', ...said, at };
  }

  private convertAlias(
    node: Node & { source: string },
    path: string,
    depth: number,
    hidden: boolean,
  ): YamlValue {
    const at = this.positionOf(node);
    const target = this.anchors.get(node.source);
    if (target === undefined) {
      const alias = hidden ? 'this alias' : `"*${node.source}" without quotes is an alias, which`;
      this.report(at, path, `${alias} has no anchor before it; quote the text, or define the anchor first`);
      this.problems.ignorePosition(at);
      return nothing(at);
    }
    if (this.open.has(target)) {
      const alias = hidden ? 'this alias' : `the alias "*${node.source}"`;
      this.report(
        at,
        path,
        `${alias} is inside its own anchor, so its expansion would never end; remove the alias`,
      );
      this.problems.ignorePosition(at);
      return nothing(at);
    }
    this.aliasDepth++;
    const value = this.convert(target, path, depth, hidden || this.hidden.has(target));
    this.aliasDepth--;
    return value;
  }

  private convertFields(
    pairs: readonly unknown[],
    path: string,
    depth: number,
    hidden: boolean,
  ): Map<string, YamlField> {
    const fields = new Map<string, YamlField>();
    const merges: YamlValue[] = [];
    pairs.forEach((pair, index) => {
      if (!isPair(pair) || this.gaveUp) return;
      const showKey = (name: string): boolean => !hidden && this.showKey(path, name);
      // Nothing is known yet about a key that is an alias or a mapping.
      const key = this.convert(pair.key, path, depth + 1, !showKey(''));
      if (key.kind !== 'scalar') {
        this.report(key.at, path, 'a key must be a string, not a mapping or a list; write a string');
        return;
      }
      const shown = showKey(key.text);
      const childPath = shown ? joinPath(path, key.text) : `${path}[${index}]`;
      const value =
        pair.value === null ? nothing(key.at) : this.convert(pair.value, childPath, depth + 1, !shown);
      const first = fields.get(key.text);
      if (key.plain && key.text === '<<') {
        merges.push(value);
      } else if (first !== undefined && !shown) {
        this.report(key.at, childPath, 'this key occurs twice in one mapping; remove one of the two');
      } else {
        if (first !== undefined) {
          const twice = `the key "${key.text}" occurs twice in one mapping, first on line ${first.keyAt.line}`;
          this.problems.warn(
            key.at,
            childPath,
            `${twice}, and only the last one counts; remove one of the two`,
          );
        }
        fields.set(key.text, { key: key.text, keyAt: key.at, keyPlain: key.plain, index, shown, value });
      }
    });
    for (const merge of merges) this.merge(merge, fields, path);
    return fields;
  }

  /**
   * Adds the fields of a merge key that the mapping does not have. The first of several sources wins (YAML 1.1 merge
   * type).
   */
  private merge(source: YamlValue, fields: Map<string, YamlField>, path: string): void {
    const sources = source.kind === 'list' ? source.items : [source];
    for (const item of sources) {
      if (item.kind !== 'map') {
        this.report(
          item.at,
          joinPath(path, '<<'),
          'a merge key (<<) requires a mapping or a list of mappings; use an alias for a mapping, or remove the key',
        );
        continue;
      }
      for (const field of item.fields.values()) if (!fields.has(field.key)) fields.set(field.key, field);
    }
  }

  private remember(node: Node & { anchor?: string }, hidden: boolean): void {
    // Remember an anchor only at its definition, because an expansion must not restore an older definition of the name.
    if (this.aliasDepth > 0 || node.anchor === undefined) return;
    this.anchors.set(node.anchor, node);
    if (hidden) this.hidden.add(node);
  }

  private report(at: Position, path: string, message: string): void {
    const place = `${at.line}:${at.column}`;
    if (this.reported.has(place)) return;
    this.reported.add(place);
    this.problems.error(at, path, message);
  }

  private warn(at: Position, path: string, message: string): void {
    const place = `${at.line}:${at.column}`;
    if (this.reported.has(place)) return;
    this.reported.add(place);
    this.problems.warn(at, path, message);
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
