import type { YamlMap, YamlValue } from '../../config/yaml/yaml-document.js';
import { type Input, readInputText } from '../read/input.js';
import { workloadsOf } from '../read/installation.js';
import type { Editable, Workload, YamlPath } from '../read/workload.js';
import { addFields, addItems, commentOut, setText } from './yaml-edits.js';

type Variables = Readonly<Record<string, string>>;

/** What a workload is to be. */
export interface Target {
  /** Name and tag: `weir:0.1.0`. */
  readonly image: string;
  /** Variables to add; none of them is there. */
  readonly variables: Variables;
}

/**
 * The text of a workload's file with image and variables changed. Undefined where the file is written in a way that
 * this cannot do, such as variables that an alias brings: what was made is read again, and taken only if it says what
 * was meant and everything else as before.
 */
export function editWorkload(
  workload: Workload,
  inputs: readonly Input[],
  target: Target,
): string | undefined {
  const changed = stepsOf(target).reduce<Workload | undefined>((current, step) => {
    const lines = current && step(current.edit, current.input.lines, current);
    if (current === undefined || lines === undefined) return undefined;
    return again(workload, inputs, lines.join('\n'));
  }, workload);
  if (changed === undefined || !isMeant(workload, changed, target)) return undefined;
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
  // A compose file has either.
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

/** `host:5000/weir:0.1.0` as `host:5000/weir` and `0.1.0`. */
export function splitTag(image: string): readonly [name: string, tag: string] {
  const [, name = image, tag = 'latest'] = /^(.*?)(?::([^:/]+))?$/.exec(image) ?? [];
  return [name, tag];
}

/** The same workload, in a text that was made of its file. */
function again(workload: Workload, inputs: readonly Input[], text: string): Workload | undefined {
  const input = readInputText(workload.input.file, text);
  if (typeof input === 'string') return undefined;
  const all = inputs.map((one) => (one === workload.input ? input : one));
  const found = workloadsOf(input, all);
  return typeof found === 'string' ? undefined : found.find(({ title }) => title === workload.title);
}

function isMeant(before: Workload, after: Workload, { image, variables }: Target): boolean {
  const wanted = { ...before.environment.variables, ...variables };
  const names = Object.keys(wanted);
  return (
    after.image === image &&
    names.length === Object.keys(after.environment.variables).length &&
    names.every((name) => after.environment.variables[name] === wanted[name]) &&
    rest(before) === rest(after)
  );
}

/** Everything that the file says but for what is changed, to be compared. */
function rest({ input, edit }: Workload): string {
  const { root, image, tag, variables, drop } = edit;
  const changed = [
    image,
    variables,
    ...(tag === undefined ? [] : [tag]),
    ...drop.map((key): YamlPath => [...image.slice(0, -1), key]),
  ];
  const without = (map: YamlMap): unknown =>
    changed.reduce<unknown>((value, path) => omit(value, path), told(map));
  const documents = input.documents.map((document) =>
    document === root ? without(root) : told(document, isEmbedded(root, input) ? root : undefined),
  );
  return JSON.stringify([documents, without(root)]);
}

/** Whether a document is a text in another one, as in a ConfigMap, or a part of it, as in a list. */
function isEmbedded(root: YamlMap, { documents }: Input): boolean {
  return !documents.includes(root);
}

/** A value without positions. Where `embedded` is changed, what may hold it is left out: it is compared by itself. */
function told(value: YamlValue, embedded?: YamlMap): unknown {
  if (value === embedded) return '';
  if (value.kind === 'list') return value.items.map((item) => told(item, embedded));
  if (value.kind === 'map')
    return Object.fromEntries([...value.fields].map(([key, field]) => [key, told(field.value, embedded)]));
  if (embedded !== undefined && /\bkind["']?:\s*["']?EnvoyGateway\b/.test(value.text)) return '';
  return `${value.plain} ${value.text}`;
}

/** Without what is at a path, and without mappings that hold nothing then. */
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
