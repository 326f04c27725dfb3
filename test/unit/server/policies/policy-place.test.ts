import { describe, expect, test } from '@jest/globals';
import { assetPath } from '../../../../src/runtime/assets.js';
import {
  BUNDLED_POLICY,
  overlookedPolicies,
  policyPlace,
  policySource,
} from '../../../../src/server/policies/policy-place.js';
import { readSettings } from '../../../../src/server/settings/read-settings.js';
import { settingsOf } from '../../../support/weir/settings.js';

const UNSET = settingsOf({});
const LAYOUT = {
  setting: 'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY',
  beside: true,
  ignoreDotFiles: false,
};

test('without settings, the bundled policy is used', () => {
  expect(policyPlace(UNSET)).toBe(assetPath(BUNDLED_POLICY));
});

test('CONFIG_PATH', () => {
  expect(policyPlace({ ...UNSET, configPath: '/etc/weir' })).toBe('/etc/weir');
});

test.each([
  [{ runtimeRoot: '/data' }, '/data/config'],
  [{ runtimeRoot: '/data', runtimeSubdirectory: 'ratelimit' }, '/data/ratelimit/config'],
  [{ runtimeSubdirectory: 'ratelimit' }, '/srv/runtime_data/current/ratelimit/config'],
  [{ runtimeAppDirectory: 'app' }, '/srv/runtime_data/current/app'],
  [{ runtimeRoot: '/data/', runtimeSubdirectory: '/sub/', runtimeAppDirectory: 'a/b' }, '/data/sub/a/b'],
])('%j is the layout of the reference', (given, directory) => {
  expect(policyPlace({ ...UNSET, ...given })).toEqual({ ...LAYOUT, directory });
});

test('RUNTIME_WATCH_ROOT=false and RUNTIME_IGNOREDOTFILES=true', () => {
  const given = { runtimeRoot: '/data', runtimeWatchRoot: false, runtimeIgnoreDotFiles: true };
  expect(policyPlace({ ...UNSET, ...given })).toEqual({
    ...LAYOUT,
    directory: '/data/config',
    beside: false,
    ignoreDotFiles: true,
  });
});

describe('policies in the default directory of the reference', () => {
  const notes = (
    environment: Record<string, string>,
    exists: (path: string) => boolean = (path) => path === '/srv/runtime_data/current',
  ) => {
    const settings = settingsOf(environment);
    return overlookedPolicies(settings, exists);
  };

  test('are reported if no setting uses them', () => {
    expect(notes({})).toEqual([
      expect.stringMatching(
        /does not read \/srv\/runtime_data\/current; to load .*, set RUNTIME_ROOT=\/srv\/runtime_data\/current/,
      ),
    ]);
  });

  test.each([
    { RUNTIME_ROOT: '/data' },
    { RUNTIME_SUBDIRECTORY: 'ratelimit' },
    { CONFIG_PATH: '/etc/weir' },
    { CONFIG_TYPE: 'GRPC_XDS_SOTW' },
  ])('%j: no report', (environment) => expect(notes(environment)).toEqual([]));

  test('are not reported if they do not exist', () => expect(notes({}, () => false)).toEqual([]));
});

test.each([
  [{}, 'the bundled policy'],
  [{ CONFIG_PATH: '/etc/weir' }, '/etc/weir'],
  [{ RUNTIME_ROOT: '/data', RUNTIME_SUBDIRECTORY: 'ratelimit' }, '/data/ratelimit/config'],
  [{ CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: 'xds:18000' }, 'management server xds:18000'],
])('%j: the log shows the source %s', (environment: Record<string, string>, source) => {
  const read = readSettings(environment);
  expect(read.ok && policySource(read.settings)).toBe(source);
});
