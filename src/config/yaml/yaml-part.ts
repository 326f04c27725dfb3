import { type Position, ProblemList, WHOLE_FILE } from './config-problem.js';
import { MAX_YAML_DOCUMENTS } from './yaml-bounds.js';
import { decodeYaml, parseYamlText } from './yaml-document.js';
import type { ShowKey, YamlScalar, YamlValue } from './yaml-value.js';

/** A text that stands in a file: the whole, one document of it, or a scalar that is YAML itself. */
export interface YamlPart {
  readonly text: string;
  /** The place in the file of a place in the text; of {@link WHOLE_FILE}, where the text begins. */
  readonly placeOf: (at: Position) => Position;
}

/** As parseYaml, for a part of a file: what it gives and what it reports stands where it stands in the file. */
export function parseYamlPart(
  part: YamlPart,
  problems: ProblemList,
  options: { readonly showKey?: ShowKey } = {},
): YamlValue | undefined {
  const value = parseYamlText(part.text, new PlacedProblems(problems, part.placeOf), options);
  return value === undefined ? undefined : placed(value, part.placeOf);
}

/**
 * All documents of a file, such as the manifests that one has for Kubernetes, without those that hold nothing. What is
 * wrong goes into `problems`, and the others do not suffer.
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

/** The texts between lines of `---`, which can stand nowhere else at the beginning of a line (YAML 1.2, 9.1.2). */
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
    // What may stand behind the marker stays where it is.
    lines.push(lines.length === 0 ? line.replace(/^---(?=\s|$)/, '   ') : line);
  }
  end(0);
  return parts;
}

function partOf(text: string, first: number): YamlPart {
  return { text, placeOf: ({ line, column }) => ({ line: Math.max(line, 1) + first - 1, column }) };
}

/**
 * A scalar of a document as a text of its own. `lines` are those of the whole file. Where the scalar's text does not
 * stand in the file line by line, as in quotes, all its places are that of the scalar.
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

/** Reports to another list, at the places that those of a part have in the file. */
class PlacedProblems extends ProblemList {
  private readonly target: ProblemList;
  private readonly placeOf: (at: Position) => Position;

  constructor(target: ProblemList, placeOf: (at: Position) => Position) {
    super(target.file);
    this.target = target;
    this.placeOf = placeOf;
  }

  override closePlace(at: Position): void {
    super.closePlace(at);
    this.target.closePlace(this.placeOf(at));
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
