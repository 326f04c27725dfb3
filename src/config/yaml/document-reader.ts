import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseAllDocuments,
  type Scalar,
  visit,
  type YAMLParseError,
} from 'yaml';
import { type Position, type ProblemList, WHOLE_FILE } from './config-problem.js';
import {
  joinPath,
  MAX_ALIAS_VALUES,
  MAX_YAML_DEPTH,
  type ShowKey,
  VARIABLE,
  type YamlField,
  type YamlScalar,
  type YamlValue,
} from './yaml-value.js';

/** The parser's messages that repeat text of the document, without this text. */
const WITHOUT_TEXT: ReadonlyMap<string, string> = new Map([
  ['BAD_DIRECTIVE', 'Invalid directive'],
  ['BAD_DQ_ESCAPE', 'Invalid escape sequence'],
  ['TAG_RESOLVE_FAILED', 'Unresolved tag'],
]);

/** Message for an unrendered template, which is often valid YAML. */
const TEMPLATE =
  'this is a template ("{{") that has not been rendered yet; render it first, for example with "helm ' +
  'template", and load the result, or put the text in quotes';

/** Maximum number of syntax errors reported per document, because one missing quote can cause hundreds. */
const MAX_SYNTAX_ERRORS = 20;
const TAGGED =
  'a value can have no YAML tag except !!str; remove the tag, and put the value in quotes if it is a text';
const TOO_DEEP = `the file is nested more than ${MAX_YAML_DEPTH} levels deep; flatten the file`;

export interface YamlOptions {
  /** Whether messages may repeat nothing from the file. */
  readonly secret?: boolean;
  /** Decides for each key whether messages may show it. By default, all keys are shown unless `secret` is set. */
  readonly showKey?: ShowKey;
  /**
   * Returns the position in the file of a position in the text, for a text that is a part of a file. It is also called
   * with {@link WHOLE_FILE}, for problems of the whole text.
   */
  readonly placeOf?: (at: Position) => Position;
}

/** Reads the documents of a text: parses them, reports syntax errors, and converts the parser's nodes to values. */
export class DocumentReader {
  private readonly text: string;
  private readonly problems: ProblemList;
  private readonly secret: boolean;
  private readonly showKey: ShowKey;
  /** {@link YamlOptions.placeOf}. */
  readonly placeOf: (at: Position) => Position;
  private readonly lines = new LineCounter();
  /** Anchored nodes by name, in document order. An alias refers to the latest one before it (YAML 1.2, 7.1). */
  private readonly anchors = new Map<string, Node>();
  /** Nodes being converted, to detect an alias to its own ancestor. */
  private readonly open = new Set<Node>();
  private aliasDepth = 0;
  private aliasValues = 0;
  /** Whether a document could not be read, which is reported. */
  failed = false;
  /** Anchored nodes whose contents must not be shown wherever an alias repeats them. */
  private readonly hidden = new Set<Node>();
  /** Problems that were reported, because the expansion of an alias must not report them again. */
  private readonly reported = new Set<string>();

  constructor(text: string, problems: ProblemList, options: YamlOptions) {
    this.text = text;
    this.problems = problems;
    this.secret = options.secret === true;
    this.showKey = options.showKey ?? (() => !this.secret);
    this.placeOf = options.placeOf ?? ((at) => at);
  }

  /** Returns the documents of the text, whose syntax may be wrong. */
  parse(): readonly Document.Parsed[] {
    try {
      // The failsafe schema reads every scalar as text. This module reads tags and checks unique keys.
      const documents = parseAllDocuments(this.text, {
        version: '1.2',
        schema: 'failsafe',
        resolveKnownTags: false,
        prettyErrors: false,
        uniqueKeys: false,
        logLevel: 'error',
        lineCounter: this.lines,
      });
      if (!('empty' in documents)) return documents;
      this.reportSyntax(documents.errors);
      return [];
    } catch (error) {
      // The parser recurses.
      if (!(error instanceof RangeError)) throw error;
      this.giveUp(this.placeOf(WHOLE_FILE), '', TOO_DEEP);
      return [];
    }
  }

  /** Returns the value of a document; undefined if it is empty, or could not be read. */
  read(document: Document.Parsed): YamlValue | undefined {
    this.failed = false;
    this.anchors.clear();
    this.reportSyntax(document.errors, document);
    if (this.failed || document.contents === null) return undefined;
    const value = this.convert(document.contents, '', 0, this.secret);
    return this.failed ? undefined : value;
  }

  positionOf(node: { readonly range?: readonly number[] | null } | null): Position {
    return this.positionAt(node?.range?.[0] ?? 0);
  }

  private positionAt(offset: number): Position {
    const { line, col } = this.lines.linePos(offset);
    return this.placeOf({ line: Math.max(line, 1), column: Math.max(col, 1) });
  }

  private reportSyntax(errors: Document.Parsed['errors'], document?: Document.Parsed): void {
    // The parser overflowed the stack.
    if (errors.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) {
      this.giveUp(this.placeOf(WHOLE_FILE), '', TOO_DEEP);
      return;
    }
    // Later errors on the same line are mostly caused by the first.
    let reportedLine = 0;
    for (const error of errors.slice(0, MAX_SYNTAX_ERRORS)) {
      const offset = this.offsetOf(error, document);
      const { line } = this.lines.linePos(offset);
      const start = this.text.lastIndexOf('\n', error.pos[0] - 1) + 1;
      const text = this.text.slice(start).split('\n', 1)[0] as string;
      const mark = text.includes('{{') ? TEMPLATE : text.includes('${') ? VARIABLE : undefined;
      // The parser reports the bracket of a variable, and not its start.
      const from = mark === VARIABLE ? start + text.indexOf('${') : offset;
      if (line !== reportedLine) this.giveUp(this.positionAt(from), '', mark ?? sentenceOf(error));
      // Each mark of a template causes several errors.
      if (mark !== undefined) break;
      reportedLine = line;
    }
  }

  /** The parser reports text that is not closed where the text ends. */
  private offsetOf({ message, pos }: YAMLParseError, document: Document.Parsed | undefined): number {
    const isUnclosed = message.startsWith('Missing closing') || message.includes('end with a');
    let [offset] = pos;
    if (isUnclosed && document !== undefined) offset = openingOf(document, offset) ?? offset;
    while (this.text[offset] === ' ') offset++;
    return offset;
  }

  /** `hidden`: no part of the node may be shown. */
  private convert(node: ParsedNode | Node | null, path: string, depth: number, hidden: boolean): YamlValue {
    const at = this.positionOf(node);
    if (this.failed) return nothing(at);
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
      this.refuse(at, path, TEMPLATE);
      return nothing(at);
    }
    if (isMap(node) || isSeq(node)) {
      this.remember(node, hidden || !this.showKey(path, ''));
      this.open.add(node);
      const value: YamlValue = isMap(node)
        ? { kind: 'map', fields: this.convertFields(node.items, path, depth, hidden), at }
        : {
            kind: 'list',
            items: node.items.map((item, i) =>
              this.convert(item as Node, `${path}[${i}]`, depth + 1, hidden),
            ),
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
    if (node.tag !== '!' && node.tag !== 'tag:yaml.org,2002:str') this.refuse(at, path, TAGGED);
    return { kind: 'scalar', text, plain: false, at };
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
      this.refuse(at, path, `${alias} has no anchor before it; quote the text, or define the anchor first`);
      return nothing(at);
    }
    if (this.open.has(target)) {
      const alias = hidden ? 'this alias' : `the alias "*${node.source}"`;
      const reason = 'is inside its own anchor, so its expansion would never end; remove the alias';
      this.refuse(at, path, `${alias} ${reason}`);
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
      if (!isPair<Node, Node | null>(pair) || this.failed) return;
      const showKey = (name: string): boolean => !hidden && this.showKey(path, name);
      // Nothing is known yet about a key that is an alias or a mapping.
      const key = this.convert(pair.key, path, depth + 1, !showKey(''));
      if (key.kind !== 'scalar') {
        if (this.failed) return;
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

  private isNew({ line, column }: Position): boolean {
    const place = `${line}:${column}`;
    if (this.reported.has(place)) return false;
    this.reported.add(place);
    return true;
  }

  private report(at: Position, path: string, message: string): void {
    if (this.isNew(at)) this.problems.error(at, path, message);
  }

  /** Reports an error because of which the value is unknown, so that other messages about it would be guesses. */
  private refuse(at: Position, path: string, message: string): void {
    this.report(at, path, message);
    this.problems.ignorePosition(at);
  }

  private giveUp(at: Position, path: string, message: string): void {
    this.failed = true;
    this.problems.error(at, path, message);
  }
}

function nothing(at: Position): YamlScalar {
  return { kind: 'scalar', text: '', plain: true, at };
}

/** Returns a parser's message without text of the document, which may be an API key. */
function sentenceOf({ code, message }: YAMLParseError): string {
  // The token follows the message.
  const shown = code === 'UNEXPECTED_TOKEN' ? message.split(': ', 1)[0] : WITHOUT_TEXT.get(code);
  return `this is not valid YAML: ${shown ?? message}`;
}

/** Returns the start of the quoted text, list or mapping in brackets that ends at an offset, if there is one. */
function openingOf(document: Document, end: number): number | undefined {
  let start: number | undefined;
  visit(document, {
    Node: (_key, node) => {
      const hasMarks = isScalar(node)
        ? node.type?.startsWith('QUOTE') === true
        : isCollection(node) && node.flow === true;
      if (!hasMarks || node.range?.[1] !== end) return undefined;
      start = node.range[0];
      return visit.BREAK;
    },
  });
  return start;
}
