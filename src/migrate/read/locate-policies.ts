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

/** Where the policies of an installation are. */
export type FoundPolicies =
  /** Files, here. `directory`: of those in a layout of the reference. */
  | {
      readonly kind: 'files';
      readonly places: readonly PolicyPlace[];
      readonly directory: string | undefined;
    }
  /** Parts of the files that were named; `of`: the ConfigMap, or whatever holds them. */
  | { readonly kind: 'parts'; readonly parts: readonly OpenedPart[]; readonly of: string }
  | { readonly kind: 'management-server' }
  /** A sentence with a remedy. */
  | { readonly kind: 'not-found'; readonly text: string };

/** The ConfigMaps of all files, and the files they stand in. */
interface MapInFile {
  readonly map: Manifest;
  readonly input: Input;
}

/**
 * Finds the policies: in what the user named (`root`, which stands for RUNTIME_ROOT or is the directory of the files
 * itself, and policy files), else in what the workload mounts, else in ConfigMaps, else where the settings say.
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
  if (root === undefined && workload?.policies !== undefined) return inValues(workload, workload.policies);
  const mounted =
    root === undefined && workload !== undefined ? inMounts(workload, inputs, settings) : undefined;
  if (mounted !== undefined) return mounted;
  const maps = root === undefined ? mapsOf(inputs) : [];
  if (maps.length > 0) return inMaps(maps);
  const place = policiesBelow(root, settings);
  if (place !== undefined) return { kind: 'files', places: [place], directory: place.directory };
  const text =
    root === undefined
      ? `the service reads its policies from ${placeText(placeInContainer(settings))}, and no file says what lies ` +
        'there; name the directory of this machine that holds them, too'
      : `${JSON.stringify(root)} holds no policies; name the directory that RUNTIME_ROOT names, or the one with them`;
  return { kind: 'not-found', text };
}

/** Where policies are read, for people. */
function placeText(place: PolicyPlace): string {
  const directory = JSON.stringify(pathOfPlace(place));
  if (typeof place === 'string' || !place.beside) return directory;
  return `${directory} and from files beside it such as ${JSON.stringify(`${place.directory}.yaml`)}`;
}

function inValues(workload: Workload, parts: readonly OpenedPart[]): FoundPolicies {
  if (parts.length > 0) return { kind: 'parts', parts, of: workload.input.file };
  return {
    kind: 'not-found',
    text: `the values hold no policies; name the directory, or the ConfigMap's manifest, that has them`,
  };
}

/** Mounts that a server in the container reads as policies. */
function inMounts(
  workload: Workload,
  inputs: readonly Input[],
  settings: Settings,
): FoundPolicies | undefined {
  const place = placeInContainer(settings);
  const directory = pathOfPlace(place);
  const nearest = mountsAt(workload.mounts, directory);
  // Below the directory, or beside it where the settings say that this counts, too.
  const within = workload.mounts.filter(
    ({ target }) =>
      !nearest.some((mount) => mount.target === target) &&
      (isPolicyFile(place, target) || isPolicyFile(place, posix.join(target, 'any.yaml'))),
  );
  const mounts = [...nearest, ...within];
  const elsewhere = mounts.find(({ source }) => source.kind === 'elsewhere');
  if (elsewhere?.source.kind === 'elsewhere') {
    const text = `the policies lie in ${elsewhere.source.what}; copy them to a directory, and name it, too`;
    return { kind: 'not-found', text };
  }
  const paths = [
    ...mounts.flatMap((mount) => pathOf(mount, place)),
    ...besideIn(workload.mounts, nearest, place),
  ];
  const texts = mounts.flatMap(({ source }) => (source.kind === 'text' ? [source] : []));
  if (texts.length > 0) return inTexts(texts, paths.length > 0);
  if (paths.length > 0) {
    const [first] = paths;
    const only = typeof first === 'string' || paths.length > 1 ? undefined : first?.directory;
    return { kind: 'files', places: paths, directory: only };
  }
  return inMountedMaps(mounts, inputs, place);
}

/** The mounts that a path of the container lies in: those with the longest target. */
function mountsAt(mounts: readonly Mount[], path: string): readonly Mount[] {
  const above = mounts
    .filter(({ target }) => isBelow(path, target))
    .sort((a, b) => b.target.length - a.target.length);
  return above.filter(({ target }) => target === above[0]?.target);
}

/** What lies beside the directory of a layout, where that directory is a mount of its own. */
function besideIn(
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

/** A file, or a directory that is read as the place is. */
function placeAt(path: string, place: PolicyPlace): PolicyPlace {
  return typeof place !== 'string' && isDirectory(path) ? { ...place, directory: path, beside: false } : path;
}

/** Policies that stand in the compose file. `hasFiles`: others lie in files. */
function inTexts(texts: readonly Extract<MountSource, { kind: 'text' }>[], hasFiles: boolean): FoundPolicies {
  const configs = texts.map(({ name, file }) => `config ${name} of ${file}`).join(' and the ');
  if (!hasFiles) return { kind: 'parts', parts: texts.map(({ part }) => part), of: `the ${configs}` };
  const text =
    `some policies are files, and others the text of the ${configs}; ` +
    'copy all to a directory, and name it, too';
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
  // A directory in one that CONFIG_PATH names is not read.
  return typeof place === 'string' && isDirectory(source.path) ? [] : [placeAt(source.path, place)];
}

function inMountedMaps(
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
      `the policies are in the ConfigMap ${missing}, which is not among the files; save it with ` +
      `\`kubectl get configmap ${missing} -o yaml > ${missing}.yaml\`, and name that file, too`;
    return { kind: 'not-found', text };
  }
  return inMaps(
    maps.filter(({ map }) => names.includes(map.name)),
    (map, key) =>
      mounted.some(({ name, target, files }) => {
        const path = files === undefined ? key : files.get(key);
        return name === map && path !== undefined && isPolicyFile(place, posix.join(target, path));
      }),
    `, as they are mounted, where the service reads them: ${placeText(place)}`,
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
 * `isRead`: whether a key of a ConfigMap is a policy file, at `where`; all that hold policies are where nothing says
 * what is mounted.
 */
function inMaps(
  maps: readonly MapInFile[],
  isRead: (map: string, key: string) => boolean = () => true,
  where = '',
): FoundPolicies {
  const parts = maps.flatMap(({ map, input }): readonly OpenedPart[] => {
    const problems = new ProblemList(input.file);
    const own = openData(map, input.lines, problems, (key) => isRead(map.name, key));
    return [{ name: `${input.file} ConfigMap ${map.name}`, opened: unopened(problems) }, ...own];
  });
  const names = maps.map(({ map, input }) => `ConfigMap ${map.name} of ${input.file}`);
  if (parts.length > maps.length) return { kind: 'parts', parts, of: `the ${names.join(' and the ')}` };
  const text =
    `the ${names.join(' and the ')} hold no policies${where}; name the manifest, or the directory, ` +
    'that has them';
  return { kind: 'not-found', text };
}

/** The directory of policies, as the service sees it. */
export function inContainer(settings: Settings): string {
  return pathOfPlace(placeInContainer(settings));
}

/** Where the service reads its policies. A layout whose variables are all unset has the reference's default root. */
function placeInContainer(settings: Settings): PolicyPlace {
  const isUnset =
    `${settings.runtimeRoot}${settings.runtimeSubdirectory}${settings.runtimeAppDirectory}` === '';
  if (isUnset && settings.configPath !== '') return settings.configPath;
  return policyPlace({ ...settings, configPath: '', runtimeRoot: settings.runtimeRoot || DEFAULT_ROOT });
}

const DEFAULT_ROOT = '/srv/runtime_data/current';

/** The policies of an installation: `root` stands for RUNTIME_ROOT, or is the directory of the files itself. */
function policiesBelow(root: string | undefined, settings: Settings): RuntimeLayout | undefined {
  const runtime = { ...settings, configPath: '', runtimeRoot: root ?? settings.runtimeRoot };
  const places = [runtime, { ...runtime, runtimeSubdirectory: '' }].map(policyPlace);
  for (const place of places) if (typeof place !== 'string' && isThere(place, root)) return place;
  const [place] = places;
  if (root === undefined || typeof place === 'string' || place === undefined || !isDirectory(root))
    return undefined;
  return { ...place, directory: root, beside: false };
}

/**
 * Whether a layout holds anything. Files such as `config.yaml` in `root` itself do not tell: it may be the directory of
 * the policies, too, in which every file counts.
 */
function isThere(place: RuntimeLayout, root: string | undefined): boolean {
  if (isDirectory(place.directory)) return true;
  return (
    siblingPaths(place).length > 0 && (root === undefined || relative(root, dirname(place.directory)) !== '')
  );
}

/** Whether a path of the container is the directory, or lies below it. */
function isBelow(path: string, directory: string): boolean {
  const base = directory.replace(/\/+$/, '');
  return path.replace(/\/+$/, '') === base || path.startsWith(`${base}/`);
}

/** Whether something there is a directory. */
export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing, below a file, or not to be looked into: no directory for us.
    return false;
  }
}
