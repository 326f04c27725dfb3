import { existsSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { textAt, valueAt } from '../../config/manifests/manifest.js';
import type { YamlMap } from '../../config/yaml/yaml-document.js';
import { type Input, readInput } from './input.js';

/** Definition of a compose service in one file. */
export interface Layer {
  readonly service: YamlMap;
  /** Root mapping of the file. */
  readonly root: YamlMap;
  readonly file: string;
  /** Directory that relative paths in this file are based on. */
  readonly folder: string;
}

/** A compose service, merged from its layers. */
export interface ComposeService {
  readonly name: string;
  /** Layers of the service; a later layer overrides an earlier one. */
  readonly layers: readonly Layer[];
  /** Layer from the first file of the project that defines the service. */
  readonly own: Layer;
  /** Reasons why some fields are unknown, a clause each. */
  readonly unresolved: readonly string[];
}

/** Files that docker compose merges, in the order of its `-f` options. */
export interface ComposeProject {
  readonly files: readonly Input[];
  /** Override file in {@link files} that the user did not name and that compose loads automatically. */
  readonly override: Input | undefined;
}

/** Names of files that compose looks for without `-f`, in order of preference. */
const DEFAULT_NAMES = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];
const OVERRIDES = [
  'compose.override.yml',
  'compose.override.yaml',
  'docker-compose.override.yml',
  'docker-compose.override.yaml',
];

/** Maximum length of a chain of `extends`. */
const MAX_EXTENDS = 20;

/**
 * Returns the name of the compose file that compose would use in a folder. Returns undefined if no such file exists.
 */
export function composeFileIn(folder: string): string | undefined {
  return DEFAULT_NAMES.find((name) => existsSync(join(folder, name)));
}

/**
 * Returns the project of the named compose files. Files that are only extended by others are excluded. If there is one
 * file with a default name, its override file is included, as compose does. Returns an error message if the override
 * file is invalid.
 */
export function composeProject(inputs: readonly Input[]): ComposeProject | string {
  const named = inputs.filter(({ format }) => format === 'compose');
  const extended = new Set(
    named.flatMap((input) =>
      servicesOf(input).flatMap(({ service }) => {
        const file = textAt(service, 'extends', 'file');
        const path = resolve(dirname(input.file), file);
        return file === '' || path === resolve(input.file) ? [] : [path];
      }),
    ),
  );
  const kept = named.filter(({ file }) => !extended.has(resolve(file)));
  // An override file is last, whatever order the files were named in.
  const files = [
    ...kept.filter(({ file }) => !OVERRIDES.includes(basename(file))),
    ...kept.filter(({ file }) => OVERRIDES.includes(basename(file))),
  ];
  const [only] = files;
  if (only === undefined || files.length > 1 || !DEFAULT_NAMES.includes(basename(only.file)))
    return { files, override: undefined };
  const folder = dirname(only.file);
  const name = OVERRIDES.find((one) => existsSync(join(folder, one)));
  if (name === undefined) return { files, override: undefined };
  const override = readInput(join(folder, name));
  if (typeof override === 'string') return override;
  return { files: [...files, override], override };
}

/** Returns the services for which `input` is the first file of the project that defines them. */
export function servicesIn(
  { files }: ComposeProject,
  input: Input,
  inputs: readonly Input[],
): readonly ComposeService[] {
  const folder = dirname(files[0]?.file ?? input.file);
  return servicesOf(input).flatMap(({ name, root }) => {
    const parts = files.flatMap((file) =>
      servicesOf(file).flatMap((one) => (one.name === name ? [{ file, ...one }] : [])),
    );
    const [first] = parts;
    if (first?.file !== input || first.root !== root) return [];
    const unresolved: string[] = [];
    const layers = parts.flatMap((part) =>
      withBases({ service: part.service, root: part.root, file: part.file.file, folder }, inputs, unresolved),
    );
    if (files.some(({ text }) => /!(?:reset|override)\b/.test(text)))
      unresolved.push('"!reset" and "!override" are not supported');
    const own = layers.find(({ service }) => service === first.service);
    return own === undefined ? [] : [{ name, layers, own, unresolved }];
  });
}

/** Returns a layer, preceded by the layers that it extends. */
function withBases(
  layer: Layer,
  inputs: readonly Input[],
  unresolved: string[],
  depth = 0,
): readonly Layer[] {
  const written = valueAt(layer.service, 'extends');
  if (written === undefined) return [layer];
  const name = written.kind === 'scalar' ? written.text : textAt(written, 'service');
  const base =
    depth < MAX_EXTENDS
      ? baseOf(layer, name, textAt(written, 'file'), inputs)
      : 'the chain of "extends" references is circular or too long';
  if (typeof base !== 'string') return [...withBases(base, inputs, unresolved, depth + 1), layer];
  unresolved.push(`"extends" refers to the service ${JSON.stringify(name)}, but ${base}`);
  return [layer];
}

/** Returns the layer that is extended, or a clause with the reason why it was not found. */
function baseOf(layer: Layer, name: string, file: string, inputs: readonly Input[]): Layer | string {
  const find = (root: YamlMap, at: string, folder: string): Layer | string => {
    const service = valueAt(root, 'services', name);
    return service?.kind === 'map'
      ? { service, root, file: at, folder }
      : `${JSON.stringify(at)} does not contain this service`;
  };
  if (file === '') return find(layer.root, layer.file, layer.folder);
  const path = isAbsolute(file) ? file : join(layer.folder, file);
  const input = inputs.find((one) => resolve(one.file) === resolve(path)) ?? readInput(path);
  if (typeof input === 'string') return `its file cannot be read: ${input}`;
  const root = input.documents.find((document): document is YamlMap => document.kind === 'map');
  return root === undefined
    ? `${JSON.stringify(path)} is not a compose file`
    : find(root, path, dirname(path));
}

function servicesOf(
  input: Input,
): readonly { readonly name: string; readonly service: YamlMap; readonly root: YamlMap }[] {
  return input.documents.flatMap((root) => {
    const services = valueAt(root, 'services');
    if (root.kind !== 'map' || services?.kind !== 'map') return [];
    return [...services.fields.values()].flatMap(({ key, value }) =>
      value.kind === 'map' ? [{ name: key, service: value, root }] : [],
    );
  });
}
