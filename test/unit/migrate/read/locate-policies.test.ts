/* Locations in which `weir migrate` looks for policies. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { locatePolicies } from '../../../../src/migrate/read/locate-policies.js';
import { findInVariables } from '../../../../src/migrate/variable-findings.js';
import {
  composeFile,
  configMap,
  deployment,
  Installations,
  POLICY,
  policyAs,
} from '../../../support/migrate/installations.js';

const files = new Installations();
afterAll(() => files.remove());

describe('the location of the policies', () => {
  const ROOT = 'RUNTIME_ROOT: /data, RUNTIME_SUBDIRECTORY: ratelimit';
  const locate = (texts: Readonly<Record<string, string>>) => {
    const { inputs, pick, environment } = files.good(texts);
    const { settings } = findInVariables(environment.variables, environment.unknown);
    const found = locatePolicies(undefined, inputs, pick?.workload, settings);
    const paths =
      found.kind === 'files'
        ? found.places.map((place) => (typeof place === 'string' ? place : place.directory))
        : [];
    const parts = found.kind === 'parts' ? found.parts.map(({ name }) => name) : [];
    const text = found.kind === 'not-found' ? found.text : '';
    return [...paths, ...parts, text].map((one) => one.replace(/\/\S*\/case-\d+\//, ''));
  };

  test.each([
    ['the very directory', './config:/data/ratelimit/config:ro', ['config', '']],
    ['one above it', './all:/data', ['all/ratelimit/config', '']],
    ['the nearest', './all:/data", "./near:/data/ratelimit', ['near/config', '']],
    [
      'single files',
      './a.yaml:/data/ratelimit/config/a.yaml", "./b:/data/ratelimit/config/b',
      ['a.yaml', 'b', ''],
    ],
    [
      'a volume',
      'limits:/data/ratelimit',
      [
        'the policies are in the volume limits; copy the policies to a directory, and also pass that directory',
      ],
    ],
  ])('compose: %s', (_name, volume, expected) => {
    expect(locate({ 'c.yaml': composeFile(`environment: { ${ROOT} }\nvolumes: ["${volume}"]`) })).toEqual(
      expected,
    );
  });

  test.each([
    ['a path without ./', '{ type: bind, source: rl, target: /data/ratelimit/config }', ['rl', '']],
    [
      'a volume',
      '{ type: volume, source: rl, target: /data/ratelimit/config }',
      [/^the policies are in the volume rl; /],
    ],
    [
      'a tmpfs',
      '{ type: tmpfs, target: /data/ratelimit/config }',
      [/, but the given files do not contain these policies; /],
    ],
    [
      'a volume without a name',
      '{ type: volume, target: /data }',
      [/, but the given files do not contain these policies; /],
    ],
  ])('compose, long form: %s', (_name, volume, expected) => {
    const found = locate({ 'c.yaml': composeFile(`environment: { ${ROOT} }\nvolumes: [${volume}]`) });
    expect(found).toEqual(expected.map((one) => (one instanceof RegExp ? expect.stringMatching(one) : one)));
  });

  const inline = POLICY.replace(/^/gm, '      ');
  const CONFIGS = `configs:\n  shop:\n    content: |\n${inline}\n  file: { file: ./f.yaml }\n`;
  const config = (name: string, mount = `{ source: ${name}, target: /data/ratelimit/config/${name} }`) =>
    composeFile(`environment: { ${ROOT} }\nconfigs: [${mount}]`) + CONFIGS;
  test.each([
    ['a text', config('shop'), ['c.yaml configs.shop.content', '']],
    ['a file', config('file'), ['f.yaml', '']],
    [
      'a text at the path of its name',
      config('shop', 'shop').replace(
        'RUNTIME_ROOT: /data, RUNTIME_SUBDIRECTORY: ratelimit',
        'CONFIG_PATH: /shop',
      ),
      ['c.yaml configs.shop.content', ''],
    ],
    [
      'a text beside a directory',
      `${config('shop')}`.replace('configs: [', 'volumes: ["./d:/data/ratelimit/config"]\n    configs: ['),
      [
        'some policies are files, and other policies are in the config shop in c.yaml; copy all ' +
          'policies to a directory, and also pass that directory',
      ],
    ],
  ])('configs of compose: %s', (_name, text, expected) => {
    expect(locate({ 'c.yaml': text })).toEqual(expected);
  });

  const mounts = (mount: string) =>
    `env: [{ name: RUNTIME_ROOT, value: /data }, { name: RUNTIME_SUBDIRECTORY, value: ratelimit }]\n` +
    `volumeMounts: [${mount}]`;
  const VOLUMES =
    '[{ name: v, configMap: { name: limits } }, { name: p, ' +
    'projected: { sources: [{ configMap: { name: limits } }] } }, { name: d, emptyDir: {} }]';
  const MAPS = configMap('limits', policyAs('shop')) + configMap('other', policyAs('other.yaml'));
  test.each([
    ['a ConfigMap', '{ name: v, mountPath: /data/ratelimit/config }'],
    ['a projected one', '{ name: p, mountPath: /data/ratelimit/config }'],
    ['one file of it', '{ name: v, mountPath: /data/ratelimit/config/x, subPath: shop }'],
  ])('Kubernetes: %s', (_name, mount) => {
    const found = locate({ 'k.yaml': deployment(mounts(mount), VOLUMES), 'm.yaml': MAPS });
    expect(found).toEqual(['m.yaml ConfigMap limits', 'm.yaml data["shop"]', '']);
  });

  test('a missing ConfigMap is requested', () => {
    const [text] = locate({
      'k.yaml': deployment(mounts('{ name: v, mountPath: /data/ratelimit/config }'), VOLUMES),
    });
    expect(text).toMatch(/^the policies are in the ConfigMap limits, .*kubectl get configmap limits -o yaml/);
    const [volume] = locate({
      'k.yaml': deployment(mounts('{ name: d, mountPath: /data/ratelimit }'), VOLUMES),
    });
    expect(volume).toMatch(/^the policies are in the volume d/);
  });

  test.each([
    ['ConfigMaps alone', { 'm.yaml': MAPS }, 4],
    ['a policy file', { 'shop.yaml': POLICY }, 1],
    [
      'values with a text',
      { 'v.yaml': `image: { repository: ratelimit }\nconfig: |\n${POLICY.replace(/^/gm, '  ')}\n` },
      1,
    ],
    [
      'values with files',
      {
        'v.yaml': `image: { repository: ratelimit }\nfiles:\n  ${policyAs('a.yaml').replaceAll('\n', '\n  ')}\n`,
      },
      1,
    ],
    [
      'values with a mapping',
      { 'v.yaml': `image: { repository: ratelimit }\nconfig:\n${POLICY.replace(/^/gm, '  ')}\n` },
      1,
    ],
    [
      'values with domains',
      { 'v.yaml': 'image: { repository: ratelimit }\ndescriptors: { a: [{ key: b }], c: [] }\n' },
      2,
    ],
  ])('%s', (_name, texts, length) => {
    const found = locate(texts as Record<string, string>);
    expect([found.length - 1, found.at(-1)]).toEqual([length, '']);
  });
});
