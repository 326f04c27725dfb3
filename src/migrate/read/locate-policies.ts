import { statSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import {
  isPolicyFile,
  type PolicyPlace,
  pathOfPlace,
  type RuntimeLayout,
  siblingPaths,
} from '../../config/files/policy-paths.js';
import { type OpenedPart, openData } from '../../config/manifests/config-maps.js';
import { type Manifest, manifestsOf } from '../../config/manifests/manifest.js';
import { unopened } from '../../config/read/policy-source.js';
import { ProblemList } from '../../config/yaml/config-problem.js';
import { policyPlace } from '../../server/settings/policy-place.js';
import type { Settings } from '../../server/settings/settings-table.js';
import type { Input } from './input.js';
import type { Mount, MountSource, Workload } from './workload.js';

/** Location of an installation's policies. */
export type FoundPolicies =
  /** Files on this machine. `directory` is set if they are in a directory layout of the reference. */
  | {
      readonly kind: 'files';
      readonly places: readonly PolicyPlace[];
      readonly directory: string | undefined;
    }
  /** Documents in the input files. `of` names the ConfigMap or other source that contains them. */
  | { readonly kind: 'parts'; readonly parts: readonly OpenedPart[]; readonly of: string }
  | { readonly kind: 'management-server' }
  /** An error message with a remedy. */
  | { readonly kind: 'not-found'; readonly text: string };

/** A ConfigMap, and the file that contains it. */
interface MapInFile {
  readonly map: Manifest;
  readonly input: Input;
}

/**
 * Finds the policies. The order of precedence is: policy files and the directory that the user named (`root`, which is
 * RUNTIME_ROOT or directly contains the files), mounts of the workload, ConfigMaps, and the path in the settings.
 */
export function locatePolicies(
  root: string | undefined,
  inputs: readonly Input[],
  workload: Workload | undefined,
  settings: Settings,
): FoundPolicies {
  const files = inputs.filter(({ format }) => format === 'policy').map(({ file }) => file);
  if (files.length > 0 && root === undefined) return { kind: 'files', places: files, directory: undefined };
  if (root === undefined && settings.configType !== 'FILE') return { kind: 'management-server' };
  if (root === undefined && workload?.policies !== undefined)
    return policiesInValues(workload, workload.policies);
  const mounted =
    root === undefined && workload !== undefined ? policiesInMounts(workload, inputs, settings) : undefined;
  if (mounted !== undefined) return mounted;
  const maps = root === undefined ? mapsOf(inputs) : [];
  if (maps.length > 0) return policiesInConfigMaps(maps);
  const place = policiesBelow(root, settings);
  if (place !== undefined) return { kind: 'files', places: [place], directory: place.directory };
  const text =
    root === undefined
      ? `the service reads its policies from ${placeText(placeInContainer(settings))}, but the given ` +
        'files do not contain these policies; also pass the local directory that contains the policies'
      : `${JSON.stringify(root)} contains no policies; pass the RUNTIME_ROOT directory, or the directory ` +
        'that contains the policies';
  return { kind: 'not-found', text };
}

/** Describes a location of policies for a message. */
function placeText(place: PolicyPlace): string {
  const directory = JSON.stringify(pathOfPlace(place));
  if (typeof place === 'string' || !place.beside) return directory;
  return `${directory} and from files next to this directory, such as ${JSON.stringify(`${place.directory}.yaml`)}`;
}

function policiesInValues(workload: Workload, parts: readonly OpenedPart[]): FoundPolicies {
  if (parts.length > 0) return { kind: 'parts', parts, of: workload.input.file };
  return {
    kind: 'not-found',
    text: 'the values contain no policies; pass the directory or the ConfigMap manifest that contains the policies',
  };
}

/** Finds policies in the mounts of the workload, at the path where the server in the container reads them. */
function policiesInMounts(
  workload: Workload,
  inputs: readonly Input[],
  settings: Settings,
): FoundPolicies | undefined {
  const place = placeInContainer(settings);
  const directory = pathOfPlace(place);
  const nearest = mountsAt(workload.mounts, directory);
  // Mounts below the directory count, and also mounts next to it if the settings include files there.
  const within = workload.mounts.filter(
    ({ target }) =>
      !nearest.some((mount) => mount.target === target) &&
      (isPolicyFile(place, target) || isPolicyFile(place, posix.join(target, 'any.yaml'))),
  );
  const mounts = [...nearest, ...within];
  const elsewhere = mounts.find(({ source }) => source.kind === 'elsewhere');
  if (elsewhere?.source.kind === 'elsewhere') {
    const text =
      `the policies are in ${elsewhere.source.what}; copy the policies to a directory, and also pass that ` +
      'directory';
    return { kind: 'not-found', text };
  }
  const paths = [
    ...mounts.flatMap((mount) => pathOf(mount, place)),
    ...siblingPlaces(workload.mounts, nearest, place),
  ];
  const texts = mounts.flatMap(({ source }) => (source.kind === 'text' ? [source] : []));
  if (texts.length > 0) return policiesInTexts(texts, paths.length > 0);
  if (paths.length > 0) {
    const [first] = paths;
    const only = typeof first === 'string' || paths.length > 1 ? undefined : first?.directory;
    return { kind: 'files', places: paths, directory: only };
  }
  return policiesInMountedConfigMaps(mounts, inputs, place);
}

/** Returns the mounts that contain a path of the container and have the longest target. */
function mountsAt(mounts: readonly Mount[], path: string): readonly Mount[] {
  const above = mounts
    .filter(({ target }) => isBelow(path, target))
    .sort((a, b) => b.target.length - a.target.length);
  return above.filter(({ target }) => target === above[0]?.target);
}

/** Returns policies next to the directory of a layout, if that directory is a separate mount. */
function siblingPlaces(
  mounts: readonly Mount[],
  nearest: readonly Mount[],
  place: PolicyPlace,
): readonly PolicyPlace[] {
  if (typeof place === 'string') return [];
  const parent = posix.dirname(place.directory);
  return mountsAt(mounts, parent)
    .filter((mount) => !nearest.includes(mount))
    .flatMap(({ target, source }) => {
      if (source.kind !== 'path') return [];
      const directory = join(source.path, posix.relative(target, place.directory));
      return siblingPaths({ ...place, directory }).map((path) => placeAt(path, place));
    });
}

/** Returns a file, or a directory that is read in the same way as `place`. */
function placeAt(path: string, place: PolicyPlace): PolicyPlace {
  return typeof place !== 'string' && isDirectory(path) ? { ...place, directory: path, beside: false } : path;
}

/**
 * Returns policies whose text is in the compose file. `hasFiles` is true if others are files, which is not supported.
 */
function policiesInTexts(
  texts: readonly Extract<MountSource, { kind: 'text' }>[],
  hasFiles: boolean,
): FoundPolicies {
  const configs = texts.map(({ name, file }) => `config ${name} in ${file}`).join(' and the ');
  if (!hasFiles) return { kind: 'parts', parts: texts.map(({ part }) => part), of: `the ${configs}` };
  const text =
    `some policies are files, and other policies are in the ${configs}; copy all policies to a directory, ` +
    'and also pass that directory';
  return { kind: 'not-found', text };
}

function pathOf({ target, source }: Mount, place: PolicyPlace): readonly PolicyPlace[] {
  if (source.kind !== 'path') return [];
  const directory = pathOfPlace(place);
  const inside = posix.relative(target, directory);
  if (isBelow(directory, target)) {
    const path = join(source.path, inside);
    return [
      typeof place === 'string' ? path : { ...place, directory: path, beside: place.beside && inside !== '' },
    ];
  }
  // With CONFIG_PATH, subdirectories are not read.
  return typeof place === 'string' && isDirectory(source.path) ? [] : [placeAt(source.path, place)];
}

function policiesInMountedConfigMaps(
  mounts: readonly Mount[],
  inputs: readonly Input[],
  place: PolicyPlace,
): FoundPolicies | undefined {
  const mounted = mounts.flatMap(({ target, source }) =>
    source.kind === 'config-map' ? [{ target, ...source }] : [],
  );
  const names = [...new Set(mounted.map(({ name }) => name))];
  if (names.length === 0) return undefined;
  const maps = mapsOf(inputs);
  const missing = names.find((name) => !maps.some(({ map }) => map.name === name));
  if (missing !== undefined) {
    const text =
      `the policies are in the ConfigMap ${missing}, which is not in the given files; save the ConfigMap ` +
      `with \`kubectl get configmap ${missing} -o yaml > ${missing}.yaml\`, and also pass that file`;
    return { kind: 'not-found', text };
  }
  return policiesInConfigMaps(
    maps.filter(({ map }) => names.includes(map.name)),
    (map, key) =>
      mounted.some(({ name, target, files }) => {
        const path = files === undefined ? key : files.get(key);
        return name === map && path !== undefined && isPolicyFile(place, posix.join(target, path));
      }),
    ` at the path where the service reads them (${placeText(place)})`,
  );
}

function mapsOf(inputs: readonly Input[]): readonly MapInFile[] {
  return inputs.flatMap((input) =>
    manifestsOf(input.documents)
      .filter(({ kind }) => kind === 'ConfigMap')
      .map((map) => ({ map, input })),
  );
}

/**
 * Finds policies in ConfigMaps. `isRead` returns whether the server reads a key as a policy file. By default all keys
 * count, because the mounts are unknown. `where` names the location in the message if there are no policies.
 */
function policiesInConfigMaps(
  maps: readonly MapInFile[],
  isRead: (map: string, key: string) => boolean = () => true,
  where = '',
): FoundPolicies {
  const parts = maps.flatMap(({ map, input }): readonly OpenedPart[] => {
    const problems = new ProblemList(input.file);
    const others = maps.filter((other) => other.input === input).map((other) => other.map);
    const own = openData(map, others, input.lines, problems, (key) => isRead(map.name, key));
    return [{ name: `${input.file} ConfigMap ${map.name}`, opened: unopened(problems) }, ...own];
  });
  const names = maps.map(({ map, input }) => `ConfigMap ${map.name} in ${input.file}`);
  if (parts.length > maps.length) return { kind: 'parts', parts, of: `the ${names.join(' and the ')}` };
  const text =
    `no policies were found in the ${names.join(' and the ')}${where}; pass the manifest or the directory ` +
    'that contains the policies';
  return { kind: 'not-found', text };
}

/** Returns the directory of policies in the container. */
export function policyDirectoryInContainer(settings: Settings): string {
  return pathOfPlace(placeInContainer(settings));
}

/**
 * Returns where the service in the container reads its policies. If all variables of the layout are unset, the default
 * root of the reference applies.
 */
function placeInContainer(settings: Settings): PolicyPlace {
  const isUnset =
    `${settings.runtimeRoot}${settings.runtimeSubdirectory}${settings.runtimeAppDirectory}` === '';
  if (isUnset && settings.configPath !== '') return settings.configPath;
  return policyPlace({ ...settings, configPath: '', runtimeRoot: settings.runtimeRoot || DEFAULT_ROOT });
}

const DEFAULT_ROOT = '/srv/runtime_data/current';

/** Returns the layout of the policies below `root`, which is RUNTIME_ROOT or directly contains the files. */
function policiesBelow(root: string | undefined, settings: Settings): RuntimeLayout | undefined {
  const runtime = { ...settings, configPath: '', runtimeRoot: root ?? settings.runtimeRoot };
  const places = [runtime, { ...runtime, runtimeSubdirectory: '' }].map(policyPlace);
  for (const place of places) if (typeof place !== 'string' && hasPolicies(place, root)) return place;
  const [place] = places;
  if (root === undefined || typeof place === 'string' || place === undefined || !isDirectory(root))
    return undefined;
  return { ...place, directory: root, beside: false };
}

/**
 * Returns whether a layout contains policies. Files such as `config.yaml` directly in `root` do not count, because
 * `root` may be the directory of the policies, in which every file is read.
 */
function hasPolicies(place: RuntimeLayout, root: string | undefined): boolean {
  if (isDirectory(place.directory)) return true;
  return (
    siblingPaths(place).length > 0 && (root === undefined || relative(root, dirname(place.directory)) !== '')
  );
}

/** Returns whether a path is the directory or is below it. */
function isBelow(path: string, directory: string): boolean {
  const base = directory.replace(/\/+$/, '');
  return path.replace(/\/+$/, '') === base || path.startsWith(`${base}/`);
}

/** Returns whether a path is an existing directory. */
export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // The path does not exist or cannot be accessed.
    return false;
  }
}
