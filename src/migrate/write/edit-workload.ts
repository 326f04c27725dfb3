import type { YamlMap, YamlValue } from '../../config/yaml/yaml-document.js';
import { type Input, readInputText } from '../read/input.js';
import { workloadsOf } from '../read/installation.js';
import type { Editable, Workload, YamlPath } from '../read/workload.js';
import { addFields, addItems, commentOut, setText } from './yaml-edits.js';

type Variables = Readonly<Record<string, string>>;

/** Image and variables that a workload gets. */
export interface Target {
  /** Image name and tag: `weir:0.1.0`. */
  readonly image: string;
  /** Variables to add, none of which is set yet. */
  readonly variables: Variables;
}

/**
 * Returns the text of a workload's file with a changed image and variables. The changed text is read again and accepted
 * only if it has the intended values and is otherwise the same. Returns undefined if the file uses syntax that cannot
 * be changed, such as an alias for the variables.
 */
export function editWorkload(
  workload: Workload,
  inputs: readonly Input[],
  target: Target,
): string | undefined {
  const changed = stepsOf(target).reduce<Workload | undefined>((current, step) => {
    const lines = current && step(current.edit, current.input.lines, current);
    if (current === undefined || lines === undefined) return undefined;
    return readAgain(workload, inputs, lines.join('\n'));
  }, workload);
  if (changed === undefined || !hasIntendedValues(workload, changed, target)) return undefined;
  return changed.input.text;
}

type Step = (edit: Editable, lines: readonly string[], workload: Workload) => readonly string[] | undefined;

function stepsOf({ image, variables }: Target): readonly Step[] {
  const added = Object.entries(variables);
  return [
    ({ root, image: path, tag }, lines) =>
      setText(lines, root, path, tag === undefined ? image : splitTag(image)[0]),
    ({ root, tag }, lines) => (tag === undefined ? lines : setText(lines, root, tag, splitTag(image)[1])),
    (edit, lines) => addVariables(edit, lines, added),
    ({ root, drop, image: path }, lines) =>
      drop.reduce<readonly string[] | undefined>(
        (current, key) => current && commentOut(current, root, [...path.slice(0, -1), key]),
        lines,
      ),
  ];
}

function addVariables(
  { root, variables: path, form }: Editable,
  lines: readonly string[],
  added: readonly (readonly [string, string])[],
): readonly string[] | undefined {
  if (added.length === 0) return lines;
  if (form === 'names-and-values')
    return addItems(
      lines,
      root,
      path,
      added.map(([name, value]) => ({ name, value })),
    );
  // A compose file may have a mapping or a list.
  return (
    addFields(lines, root, path, Object.fromEntries(added)) ??
    addItems(
      lines,
      root,
      path,
      added.map(([name, value]) => `${name}=${value}`),
    )
  );
}

/** Splits `host:5000/weir:0.1.0` into `host:5000/weir` and `0.1.0`. */
export function splitTag(image: string): readonly [name: string, tag: string] {
  const [, name = image, tag = 'latest'] = /^(.*?)(?::([^:/]+))?$/.exec(image) ?? [];
  return [name, tag];
}

/** Returns the same workload, read from the changed text of its file. */
function readAgain(workload: Workload, inputs: readonly Input[], text: string): Workload | undefined {
  const input = readInputText(workload.input.file, text);
  if (typeof input === 'string') return undefined;
  const all = inputs.map((one) => (one === workload.input ? input : one));
  const found = workloadsOf(input, all);
  return typeof found === 'string' ? undefined : found.find(({ title }) => title === workload.title);
}

function hasIntendedValues(before: Workload, after: Workload, { image, variables }: Target): boolean {
  const wanted = { ...before.environment.variables, ...variables };
  const names = Object.keys(wanted);
  return (
    after.image === image &&
    names.length === Object.keys(after.environment.variables).length &&
    names.every((name) => after.environment.variables[name] === wanted[name]) &&
    unchangedParts(before) === unchangedParts(after)
  );
}

/** Returns the unchanged parts of the file as a string, for comparison. */
function unchangedParts({ input, edit }: Workload): string {
  const { root, image, tag, variables, drop } = edit;
  const changed = [
    image,
    variables,
    ...(tag === undefined ? [] : [tag]),
    ...drop.map((key): YamlPath => [...image.slice(0, -1), key]),
  ];
  const without = (map: YamlMap): unknown =>
    changed.reduce<unknown>((value, path) => omit(value, path), withoutPositions(map));
  const documents = input.documents.map((document) =>
    document === root
      ? without(root)
      : withoutPositions(document, isEmbedded(root, input) ? root : undefined),
  );
  return JSON.stringify([documents, without(root)]);
}

/** Returns whether `root` is not a document itself, but is contained in a string, as in a ConfigMap, or in a list. */
function isEmbedded(root: YamlMap, { documents }: Input): boolean {
  return !documents.includes(root);
}

/**
 * Returns a value without positions. Strings that may contain `embedded` are omitted, because `embedded` is compared
 * separately.
 */
function withoutPositions(value: YamlValue, embedded?: YamlMap): unknown {
  if (value === embedded) return '';
  if (value.kind === 'list') return value.items.map((item) => withoutPositions(item, embedded));
  if (value.kind === 'map')
    return Object.fromEntries(
      [...value.fields].map(([key, field]) => [key, withoutPositions(field.value, embedded)]),
    );
  if (embedded !== undefined && /\bkind["']?:\s*["']?EnvoyGateway\b/.test(value.text)) return '';
  return `${value.plain} ${value.text}`;
}

/** Returns a value without the field at a path, and without mappings that become empty. */
function omit(value: unknown, [step, ...path]: YamlPath): unknown {
  if (typeof value !== 'object' || value === null || step === undefined) return value;
  if (Array.isArray(value)) return value.map((item: unknown, i) => (i === step ? omit(item, path) : item));
  const entries = Object.entries(value).flatMap(([key, child]: [string, unknown]) => {
    if (key !== String(step)) return [[key, child] as const];
    if (path.length === 0) return [];
    const left = omit(child, path);
    const isEmpty = typeof left === 'object' && left !== null && Object.keys(left).length === 0;
    return isEmpty ? [] : [[key, left] as const];
  });
  return Object.fromEntries(entries);
}
