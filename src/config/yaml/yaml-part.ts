import { type Position, ProblemList, WHOLE_FILE } from './config-problem.js';
import { MAX_YAML_DOCUMENTS } from './yaml-bounds.js';
import { decodeYaml, parseYamlText } from './yaml-document.js';
import type { ShowKey, YamlScalar, YamlValue } from './yaml-value.js';

/** A text in a file: the whole file, one of its documents, or a scalar that contains YAML. */
export interface YamlPart {
  readonly text: string;
  /**
   * Returns the position in the file of a position in the text. For {@link WHOLE_FILE}, this is the start of the text.
   */
  readonly placeOf: (at: Position) => Position;
}

/** Does the same as parseYaml for a part of a file. Values and problems have their positions in the file. */
export function parseYamlPart(
  part: YamlPart,
  problems: ProblemList,
  options: { readonly showKey?: ShowKey } = {},
): YamlValue | undefined {
  const value = parseYamlText(part.text, new PlacedProblems(problems, part.placeOf), options);
  return value === undefined ? undefined : placed(value, part.placeOf);
}

/**
 * Parses all documents of a file, such as Kubernetes manifests, except empty ones. Problems are added to `problems` and
 * do not affect other documents.
 */
export function parseYamlDocuments(bytes: Uint8Array, problems: ProblemList): readonly YamlValue[] {
  const text = decodeYaml(bytes, problems);
  if (text === undefined) return [];
  const parts = splitDocuments(text);
  if (parts.length > MAX_YAML_DOCUMENTS) {
    const remedy = 'split it into several files';
    problems.error(
      WHOLE_FILE,
      '',
      `the file has ${parts.length} documents, more than the maximum of ${MAX_YAML_DOCUMENTS}; ${remedy}`,
    );
    return [];
  }
  return parts.flatMap((part) => parseYamlPart(part, problems) ?? []);
}

/** Splits a text at lines of `---`, which can only begin a line as document markers (YAML 1.2, 9.1.2). */
function splitDocuments(text: string): readonly YamlPart[] {
  const parts: YamlPart[] = [];
  let lines: string[] = [];
  let first = 1;
  const end = (next: number): void => {
    if (lines.some((line) => !/^(?:\s*(?:#.*)?|%.*|\.\.\.\s*)$/.test(line)))
      parts.push(partOf(lines.join('\n'), first));
    lines = [];
    first = next;
  };
  for (const [i, line] of text.split('\n').entries()) {
    if (/^---(?=\s|$)/.test(line)) end(i + 1);
    // Spaces replace the marker, so that text after it keeps its position.
    lines.push(lines.length === 0 ? line.replace(/^---(?=\s|$)/, '   ') : line);
  }
  end(0);
  return parts;
}

function partOf(text: string, first: number): YamlPart {
  return { text, placeOf: ({ line, column }) => ({ line: Math.max(line, 1) + first - 1, column }) };
}

/**
 * Returns a scalar of a document as a separate text. `lines` are the lines of the whole file. If the file does not have
 * the scalar's text line by line, as with quotes, all positions are that of the scalar.
 */
export function scalarPart(scalar: YamlScalar, lines: readonly string[]): YamlPart {
  const { text, at } = scalar;
  const own = text.split('\n');
  const isLiteral = own.every((line, i) => {
    const written = lines[at.line + i]?.replace(/\r$/, '') ?? '';
    return line === '' || (written.endsWith(line) && written.slice(0, -line.length).trim() === '');
  });
  if (!isLiteral || scalar.plain) return { text, placeOf: () => at };
  const sample = own.findIndex((line) => line !== '');
  const indent = (lines[at.line + sample]?.replace(/\r$/, '').length ?? 0) - (own[sample]?.length ?? 0);
  return {
    text,
    placeOf: ({ line, column }) => (line === 0 ? at : { line: at.line + line, column: indent + column }),
  };
}

/** Adds problems to another list, with the positions that those of a part have in the file. */
class PlacedProblems extends ProblemList {
  private readonly target: ProblemList;
  private readonly placeOf: (at: Position) => Position;

  constructor(target: ProblemList, placeOf: (at: Position) => Position) {
    super(target.file);
    this.target = target;
    this.placeOf = placeOf;
  }

  override ignorePosition(at: Position): void {
    super.ignorePosition(at);
    this.target.ignorePosition(this.placeOf(at));
  }

  override error(at: Position, path: string, message: string): void {
    super.error(at, path, message);
    this.target.error(this.placeOf(at), path, message);
  }

  override warn(at: Position, path: string, message: string): void {
    super.warn(at, path, message);
    this.target.warn(this.placeOf(at), path, message);
  }
}

function placed(value: YamlValue, placeOf: (at: Position) => Position): YamlValue {
  const at = placeOf(value.at);
  if (value.kind === 'scalar') return { ...value, at };
  if (value.kind === 'list') return { ...value, at, items: value.items.map((item) => placed(item, placeOf)) };
  const fields = [...value.fields].map(
    ([key, field]) =>
      [key, { ...field, keyAt: placeOf(field.keyAt), value: placed(field.value, placeOf) }] as const,
  );
  return { ...value, at, fields: new Map(fields) };
}
