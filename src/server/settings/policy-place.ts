import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { assetPath } from '../../assets.js';
import type { LoadOptions } from '../../config/files/load-policies.js';
import type { PolicyPlace } from '../../config/files/policy-paths.js';
import { POLICY_SETTINGS } from './policy-settings.js';
import type { Settings } from './settings-table.js';

/** The policy that is served when no variable says where policies are. */
export const BUNDLED_POLICY = 'deploy/policies/open-api.yaml';

/** What the reference takes for RUNTIME_ROOT and RUNTIME_APPDIRECTORY where they are unset. */
const REFERENCE_ROOT = POLICY_SETTINGS.runtimeRoot.reference.default;
const REFERENCE_APP_DIRECTORY = POLICY_SETTINGS.runtimeAppDirectory.reference.default;

/** Where policies come from, for people: a management server, a path, or the bundled policy. */
export function policySource(settings: Settings): string {
  if (settings.configType !== 'FILE') return `management server ${settings.xdsServerUrl}`;
  const place = policyPlace(settings);
  if (typeof place !== 'string') return place.directory;
  return settings.configPath === '' ? 'the bundled policy' : place;
}

/** The variables that lead to the policy files with what they say, for messages. */
export function policyOrigin(settings: Settings): string {
  const place = policyPlace(settings);
  if (typeof place !== 'string') return `${place.setting} (${place.directory})`;
  return settings.configPath === '' ? 'the bundled files' : `CONFIG_PATH (${settings.configPath})`;
}

/**
 * A line for the log where policies of the reference lie in its default place and nothing names it: what is served then
 * is the bundled policy, and none of theirs.
 */
export function overlookedPolicies(
  { configType, configPath, runtimeRoot, runtimeSubdirectory, runtimeAppDirectory }: Settings,
  exists: (path: string) => boolean = existsSync,
): readonly string[] {
  const isNamed = configPath + runtimeRoot + runtimeSubdirectory + runtimeAppDirectory !== '';
  if (isNamed || configType !== 'FILE' || !exists(REFERENCE_ROOT)) return [];
  return [
    `${REFERENCE_ROOT} is not read, the bundled policy is served: set RUNTIME_ROOT=${REFERENCE_ROOT}, ` +
      'or CONFIG_PATH to another place',
  ];
}

/** How the settings say that policies are loaded. */
export function loadOptions({
  mergeDomains,
  defaultAlgorithm,
}: Pick<Settings, 'mergeDomains' | 'defaultAlgorithm'>): LoadOptions {
  return { mergeDomains, defaultAlgorithm };
}

/**
 * Where the settings say that policies are: CONFIG_PATH, or the reference's layout if any of its variables is set, or
 * the bundled policy.
 */
export function policyPlace(
  settings: Pick<
    Settings,
    | 'configPath'
    | 'runtimeRoot'
    | 'runtimeSubdirectory'
    | 'runtimeAppDirectory'
    | 'runtimeWatchRoot'
    | 'runtimeIgnoreDotFiles'
  >,
): PolicyPlace {
  const {
    runtimeRoot: root,
    runtimeSubdirectory: subdirectory,
    runtimeAppDirectory: appDirectory,
  } = settings;
  if (root === '' && subdirectory === '' && appDirectory === '') {
    return settings.configPath === '' ? assetPath(BUNDLED_POLICY) : settings.configPath;
  }
  return {
    directory: join(root || REFERENCE_ROOT, subdirectory, appDirectory || REFERENCE_APP_DIRECTORY),
    setting: 'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY',
    beside: settings.runtimeWatchRoot,
    ignoreDotFiles: settings.runtimeIgnoreDotFiles,
  };
}
