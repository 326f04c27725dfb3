/*
 * `weir migrate` finds the files that `weir serve` would read. The test copies the mounts of a compose file to the
 * paths of a container and compares both results.
 */
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { expandPaths, type PolicyPlace } from '../../../../src/config/files/policy-paths.js';
import type { ConfigProblem } from '../../../../src/config/yaml/config-problem.js';
import { readInstallation } from '../../../../src/migrate/read/installation.js';
import { locatePolicies } from '../../../../src/migrate/read/locate-policies.js';
import { findInVariables } from '../../../../src/migrate/variable-findings.js';
import { policyPlace } from '../../../../src/server/settings/policy-place.js';
import {
  composeFile,
  configMap,
  deployment,
  Installations,
  policyAs,
} from '../../../support/migrate/installations.js';

const installations = new Installations();
afterAll(() => installations.remove());

/** Files on the machine. Each file contains its own path, which identifies it in the results. */
const FILES = [
  'rl/config.yml',
  'rl/config/shop.yaml',
  'rl/config/.hidden.yaml',
  'rl/config/..2026/shop.yaml',
  'rl/config/team/deep',
  'rl/config.d/extra',
  'rl/other.yaml',
  'rl/configured.yaml',
  'near/near.yaml',
  'near/near.txt',
  'near/below/x.yaml',
];

/** Returns the contents of the files in places. */
function contents(places: readonly PolicyPlace[]): string[] {
  const errors: ConfigProblem[] = [];
  return expandPaths(places, errors)
    .map(({ file }) => readFileSync(file, 'utf8'))
    .sort();
}

/** Returns the files that migrate finds, and the files that a server in the container reads. */
function both(variables: Readonly<Record<string, string>>, volumes: readonly (readonly [string, string])[]) {
  const folder = installations.folderOf({
    ...Object.fromEntries(FILES.map((path) => [path, path])),
    'compose.yaml': composeFile(
      `environment: ${JSON.stringify(variables)}\n` +
        `volumes: ${JSON.stringify(volumes.map(([from, to]) => `./${from}:${to}`))}`,
    ),
  });
  const installation = readInstallation([join(folder, 'compose.yaml')], [], undefined);
  if (typeof installation === 'string') throw new Error(installation);
  const { settings } = findInVariables(installation.environment.variables, installation.environment.unknown);
  const found = locatePolicies(undefined, installation.inputs, installation.pick?.workload, settings);
  const root = join(folder, 'container');
  for (const [from, to] of [...volumes].sort(([, a], [, b]) => a.length - b.length)) {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    cpSync(join(folder, from), join(root, to), { recursive: true });
  }
  const inside = (path: string) => (path === '' ? '' : join(root, path));
  const place = policyPlace({
    ...settings,
    runtimeRoot: inside(settings.runtimeRoot),
    configPath: inside(settings.configPath),
  });
  return { migrate: found.kind === 'files' ? contents(found.places) : [], serve: contents([place]) };
}

const LAYOUT = { RUNTIME_ROOT: '/data', RUNTIME_SUBDIRECTORY: 'ratelimit' };
const DOT = { RUNTIME_ROOT: '/data', RUNTIME_SUBDIRECTORY: '.' };
const OFF = { RUNTIME_WATCH_ROOT: 'false' };
const PATH = { CONFIG_PATH: '/policies' };
const BELOW = [
  'rl/config.d/extra',
  'rl/config.yml',
  'rl/config/.hidden.yaml',
  'rl/config/shop.yaml',
  'rl/config/team/deep',
];

test.each<[Readonly<Record<string, string>>, (readonly [string, string])[], string[]]>([
  [LAYOUT, [['rl/config.yml', '/data/ratelimit/config.yml']], ['rl/config.yml']],
  [LAYOUT, [['rl/other.yaml', '/data/ratelimit/config.yml']], ['rl/other.yaml']],
  [LAYOUT, [['rl/config.d', '/data/ratelimit/config.d']], ['rl/config.d/extra']],
  [LAYOUT, [['rl/config.d/extra', '/data/ratelimit/config.d/x']], ['rl/config.d/extra']],
  [LAYOUT, [['rl', '/data/ratelimit']], BELOW],
  [DOT, [['rl', '/data']], BELOW],
  [{ ...DOT, ...OFF }, [['rl', '/data']], BELOW.slice(2)],
  [
    { ...LAYOUT, RUNTIME_IGNOREDOTFILES: 'true' },
    [['rl', '/data/ratelimit']],
    BELOW.filter((path) => !path.includes('/.')),
  ],
  [LAYOUT, [['near', '/data/ratelimit/config']], ['near/below/x.yaml', 'near/near.txt', 'near/near.yaml']],
  [
    LAYOUT,
    [['near', '/data/ratelimit/config/near']],
    ['near/below/x.yaml', 'near/near.txt', 'near/near.yaml'],
  ],
  [
    { RUNTIME_ROOT: '/data', RUNTIME_APPDIRECTORY: 'near' },
    [['near', '/data/near']],
    ['near/below/x.yaml', 'near/near.txt', 'near/near.yaml'],
  ],
  [PATH, [['near', '/policies']], ['near/near.yaml']],
  [
    PATH,
    [
      ['near/near.yaml', '/policies/a.yaml'],
      ['near/below/x.yaml', '/policies/b.txt'],
    ],
    ['near/near.yaml'],
  ],
  [
    PATH,
    [
      ['near/near.yaml', '/policies/a.yaml'],
      ['near/below', '/policies/below.yaml'],
    ],
    ['near/near.yaml'],
  ],
])('%j with %j: %j', (variables, volumes, files) => {
  const { migrate, serve } = both(variables, volumes);
  expect(serve).toEqual(files);
  expect(migrate).toEqual(files);
});

test('files next to the directory also count if the directory is a separate mount', () => {
  // In the container, the second mount hides `config` of the first one, so only files next to it are visible.
  const { migrate } = both(LAYOUT, [
    ['rl', '/data/ratelimit'],
    ['near', '/data/ratelimit/config'],
  ]);
  expect(migrate).toEqual([
    'near/below/x.yaml',
    'near/near.txt',
    'near/near.yaml',
    'rl/config.d/extra',
    'rl/config.yml',
  ]);
});

test('a given directory may contain files next to the policy directory', () => {
  const { settings } = findInVariables(LAYOUT);
  const located = (files: Readonly<Record<string, string>>) => {
    const root = installations.folderOf(files);
    const found = locatePolicies(root, [], undefined, settings);
    return found.kind === 'files' ? contents(found.places) : found;
  };
  expect(located({ 'ratelimit/config.yml': 'a', 'ratelimit/other.yml': 'b' })).toEqual(['a']);
  // The named directory may itself be the directory of the policies, in which every file counts.
  expect(located({ 'config.yml': 'a', 'other.yml': 'b' })).toEqual(['a', 'b']);
});

test('unused files are skipped, and the message lists the files that count', () => {
  const { inputs, pick, environment } = installations.good({
    'c.yaml': composeFile(
      'environment: { RUNTIME_ROOT: /data, RUNTIME_SUBDIRECTORY: ratelimit }\n' +
        'volumes: ["./o.yaml:/data/ratelimit/o.yaml"]',
    ),
  });
  const { settings } = findInVariables(environment.variables, environment.unknown);
  expect(locatePolicies(undefined, inputs, pick?.workload, settings)).toEqual({
    kind: 'not-found',
    text:
      'the service reads its policies from "/data/ratelimit/config" and from files next to this ' +
      'directory, such as "/data/ratelimit/config.yaml", but the given files do not contain these ' +
      'policies; also pass the local directory that contains the policies',
  });
});

describe('ConfigMaps', () => {
  const volumes = '[{ name: v, configMap: { name: limits } }]';
  const found = (mount: string) => {
    const env = '[{ name: RUNTIME_ROOT, value: /data }, { name: RUNTIME_SUBDIRECTORY, value: ratelimit }]';
    const { inputs, pick, environment } = installations.good({
      'k.yaml': deployment(`env: ${env}\nvolumeMounts: [{ name: v, ${mount} }]`, volumes),
      'm.yaml': configMap('limits', `${policyAs('config.yaml')}\n${policyAs('other.yaml')}`),
    });
    const { settings } = findInVariables(environment.variables, environment.unknown);
    const place = locatePolicies(undefined, inputs, pick?.workload, settings);
    return place.kind === 'parts' ? place.parts.slice(1).map(({ name }) => name.replace(/^.*\//, '')) : place;
  };

  test('keys count at their mount paths', () => {
    expect(found('mountPath: /data/ratelimit/config')).toEqual([
      'm.yaml data["config.yaml"]',
      'm.yaml data["other.yaml"]',
    ]);
    expect(found('mountPath: /data/ratelimit')).toEqual(['m.yaml data["config.yaml"]']);
    expect(found('mountPath: /data/ratelimit/config.yml, subPath: other.yaml')).toEqual([
      'm.yaml data["other.yaml"]',
    ]);
  });
});
