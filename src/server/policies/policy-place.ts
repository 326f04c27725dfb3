import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LoadOptions } from '../../config/files/load-policies.js';
import type { PolicyPlace } from '../../config/files/policy-paths.js';
import { assetPath } from '../../runtime/assets.js';
import { shownAddress } from '../../runtime/shown-address.js';
import type { Settings } from '../settings/settings-table.js';

/** Policy that weir loads if no variable selects policies. */
export const BUNDLED_POLICY = 'deploy/policies/open-api.yaml';

/** Default of RUNTIME_ROOT and RUNTIME_APPDIRECTORY in the reference. */
const REFERENCE_ROOT = '/srv/runtime_data/current';
const REFERENCE_APP_DIRECTORY = 'config';

/** Returns the source of the policies for messages: a management server, a path, or the bundled policy. */
export function policySource(settings: Settings): string {
  if (settings.configType !== 'FILE')
    return `management server ${settings.xdsServerUrl.map(shownAddress).join(', ')}`;
  const place = policyPlace(settings);
  if (typeof place !== 'string') return place.directory;
  return settings.configPath === '' ? 'the bundled policy' : place;
}

/** Returns the variables that select the policy files, with their values, for messages. */
export function policyOrigin(settings: Settings): string {
  const place = policyPlace(settings);
  if (typeof place !== 'string') return `${place.setting} (${place.directory})`;
  return settings.configPath === '' ? 'the bundled files' : `CONFIG_PATH (${settings.configPath})`;
}

/**
 * Returns a warning if the default folder of the reference contains policies but no variable selects it. weir then
 * serves the bundled policy instead of these.
 */
export function overlookedPolicies(
  { configType, configPath, runtimeRoot, runtimeSubdirectory, runtimeAppDirectory }: Settings,
  exists: (path: string) => boolean = existsSync,
): readonly string[] {
  const isNamed = configPath + runtimeRoot + runtimeSubdirectory + runtimeAppDirectory !== '';
  if (isNamed || configType !== 'FILE' || !exists(REFERENCE_ROOT)) return [];
  return [
    `weir uses the bundled policy and does not read ${REFERENCE_ROOT}; to load the policies in this ` +
      `directory, set RUNTIME_ROOT=${REFERENCE_ROOT}. To load other policies, set CONFIG_PATH`,
  ];
}

export function loadOptions(settings: Settings): LoadOptions {
  const { mergeDomains, defaultAlgorithm, holdEntry, redisUrl, leaseFor, leaseMax: max } = settings;
  const isLeased = leaseFor !== undefined && redisUrl !== '';
  const defaultLease = isLeased ? { forMicros: leaseFor, max, exact: true } : undefined;
  return { mergeDomains, defaultAlgorithm, defaultLease, holdEntry };
}

/**
 * Returns the location of the policies: CONFIG_PATH, the layout of the reference if one of its variables is set, or the
 * bundled policy.
 */
export function policyPlace(settings: Settings): PolicyPlace {
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
