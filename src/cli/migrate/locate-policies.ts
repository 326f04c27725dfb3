import { statSync } from 'node:fs';
import { type PolicyPlace, pathOfPlace } from '../../config/files/policy-paths.js';
import { manifestsOf, type OpenedPart, openData } from '../../config/manifests/config-maps.js';
import { unopened } from '../../config/read/policy-source.js';
import { ProblemList } from '../../config/yaml/config-problem.js';
import { policyPlace } from '../../server/policies/policy-place.js';
import type { Settings } from '../../server/settings/settings-table.js';
import type { Input } from './input.js';

/** Location of an installation's policies. */
export type FoundPolicies =
  | { readonly kind: 'files'; readonly places: readonly PolicyPlace[] }
  /** Documents in the input files. `of` names the ConfigMaps that contain them. */
  | { readonly kind: 'parts'; readonly parts: readonly OpenedPart[]; readonly of: string }
  | { readonly kind: 'management-server' }
  /** A clause that says what to pass in addition. */
  | { readonly kind: 'not-found'; readonly text: string };

/**
 * Finds the policies that the user passed: a directory (`root`), policy files, or ConfigMaps. If the workload mounts
 * ConfigMaps (`mounted`), others do not count.
 */
export function locatePolicies(
  root: string | undefined,
  inputs: readonly Input[],
  mounted: readonly string[],
  settings: Settings,
): FoundPolicies {
  const files = inputs.filter(({ format }) => format === 'policy').map(({ file }) => file);
  if (root !== undefined) {
    const { runtimeIgnoreDotFiles: ignoreDotFiles } = settings;
    const layout = { directory: root, setting: 'the directory', beside: false, ignoreDotFiles };
    return { kind: 'files', places: [layout, ...files] };
  }
  if (files.length > 0) return { kind: 'files', places: files };
  if (settings.configType !== 'FILE') return { kind: 'management-server' };
  const maps = policiesInConfigMaps(inputs, mounted);
  if (maps !== undefined) return maps;
  const place = placeInContainer(settings);
  const beside =
    typeof place !== 'string' && place.beside
      ? ` and from files next to this directory, such as "${place.directory}.yaml"`
      : '';
  const text =
    `the service reads its policies from "${pathOfPlace(place)}"${beside}; also pass the local directory, ` +
    'or the manifest of the ConfigMap, that contains these policies';
  return { kind: 'not-found', text };
}

/** Finds the policies in the ConfigMaps of the files; undefined if no ConfigMap contains one. */
function policiesInConfigMaps(
  inputs: readonly Input[],
  mounted: readonly string[],
): FoundPolicies | undefined {
  const parts: OpenedPart[] = [];
  const names: string[] = [];
  for (const { file, documents, lines } of inputs) {
    const maps = manifestsOf(documents).filter(
      ({ kind, name }) => kind === 'ConfigMap' && (mounted.length === 0 || mounted.includes(name)),
    );
    for (const map of maps) {
      const problems = new ProblemList(file);
      const own = openData(map, maps, lines, problems);
      if (own.length === 0) continue;
      parts.push({ name: `${file} ConfigMap ${map.name}`, opened: unopened(problems) }, ...own);
      names.push(`ConfigMap ${map.name} in ${file}`);
    }
  }
  return names.length === 0 ? undefined : { kind: 'parts', parts, of: names.join(' and the ') };
}

/**
 * Returns where the service in the container reads its policies. If all variables of the layout are unset, the default
 * root of the reference applies.
 */
function placeInContainer(settings: Settings): PolicyPlace {
  const { runtimeRoot, runtimeSubdirectory, runtimeAppDirectory, configPath } = settings;
  const isUnset = `${runtimeRoot}${runtimeSubdirectory}${runtimeAppDirectory}` === '';
  if (isUnset && configPath !== '') return configPath;
  return policyPlace({
    ...settings,
    configPath: '',
    runtimeRoot: runtimeRoot || '/srv/runtime_data/current',
  });
}

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // The path does not exist or cannot be accessed.
    return false;
  }
}
