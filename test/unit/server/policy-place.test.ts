import { expect, test } from '@jest/globals';
import { assetPath } from '../../../src/assets.js';
import { BUNDLED_POLICY, policyPlace } from '../../../src/server/policy-place.js';

const UNSET = {
  configPath: '',
  runtimeRoot: '',
  runtimeSubdirectory: '',
  runtimeAppDirectory: '',
  runtimeWatchRoot: true,
  runtimeIgnoreDotFiles: false,
};
const LAYOUT = {
  setting: 'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY',
  beside: true,
  ignoreDotFiles: false,
};

test('nothing set: the bundled policy', () => {
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
