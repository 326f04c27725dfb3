/* An overlay is written if a file cannot be changed by itself. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { makeDeployment } from '../../../../src/migrate/write/deployment.js';
import { composeFile, configMap, deployment, Installations } from '../../../support/migrate/installations.js';

const files = new Installations();
afterAll(() => files.remove());

const IMAGE = 'image: envoyproxy/ratelimit:1';
const TARGET = { image: 'weir:0.1.0', variables: { DEBUG_HOST: '0.0.0.0' } };

/** Returns the written files by name. */
function written(texts: Readonly<Record<string, string>>, service?: string): Record<string, string> {
  const made = makeDeployment(files.good(texts, service), TARGET, { files: [], directory: undefined });
  expect(made).toMatchObject({ decide: [], isAdded: true });
  return Object.fromEntries(made.files.map(({ path, content }) => [path, String(content)]));
}

test('the override file contains no lists, because docker compose would append them', () => {
  const texts = {
    'a.yaml': composeFile(`${IMAGE}\nbuild: .\nports: ["18080:8080"]\nenvironment: [A=b]`),
    'b.yaml': composeFile('environment: { C: d }'),
  };
  const overlay = parse(written(texts)['compose.weir.yaml'] ?? '', { logLevel: 'error' });
  // Compose merges mappings by key and replaces strings, so the overlay contains only the image and the new variables.
  expect(overlay).toEqual({
    services: { ratelimit: { image: 'weir:0.1.0', build: expect.anything(), environment: TARGET.variables } },
  });
});

describe('compose', () => {
  const OVERLAY =
    'services:\n  "ratelimit":\n    image: "weir:0.1.0"\n    environment:\n      DEBUG_HOST: "0.0.0.0"\n';
  test.each<[string, Readonly<Record<string, string>>]>([
    [
      'an alias',
      { 'c.yaml': `x: &e { A: b }\n${composeFile(`${IMAGE}\nenvironment: *e`)}  o: { environment: *e }\n` },
    ],
    [
      'a merge key',
      { 'c.yaml': `x: &e { A: b }\n${composeFile(`${IMAGE}\nenvironment:\n  <<: *e\n  C: d`)}` },
    ],
    ['the whole service', { 'c.yaml': `x: &r { ${IMAGE} }\n${composeFile('<<: *r\nports: []')}` }],
    [
      'another file that is extended',
      {
        'unnamed.yaml': composeFile(IMAGE),
        'c.yaml': composeFile('extends: { file: unnamed.yaml, service: ratelimit }'),
      },
    ],
    ['two files', { 'a.yaml': composeFile(IMAGE), 'b.yaml': composeFile('environment: [A=b]') }],
    ['files that are included', { 'a.yaml': `include: [b.yaml]\n${composeFile(IMAGE)}` }],
  ])('%s', (_name, texts) => {
    expect(written(texts)).toEqual({ 'compose.weir.yaml': OVERLAY });
  });

  test('an anchor that another service uses', () => {
    const text = `${composeFile('image: &i envoyproxy/ratelimit:1')}  other: { image: *i }\n`;
    expect(written({ 'c.yaml': text }, 'ratelimit')).toEqual({ 'compose.weir.yaml': OVERLAY });
  });

  test('removes a build, because compose would give its image the new name', () => {
    const texts = {
      'a.yaml': composeFile(`${IMAGE}\nbuild: .`),
      'b.yaml': composeFile('environment: [A=b]'),
    };
    expect(written(texts)['compose.weir.yaml']).toContain('    build: !reset null\n');
  });
});

test('changes only the image and variables of exported manifests', () => {
  const text = deployment('').replace('name: limits', 'name: limits, resourceVersion: "9", uid: u');
  expect(written({ 'k.yaml': text + configMap('other', 'a: b') })).toEqual({
    'patch.yaml':
      'spec:\n  template:\n    spec:\n      containers:\n        - name: "main"\n' +
      '          image: "weir:0.1.0"\n          env:\n            - name: DEBUG_HOST\n              value: "0.0.0.0"\n',
  });
});

test('writes variables in the syntax of docker', () => {
  const text = `# mine\nexport A="b c"\nD = e # why\n\nF='g'\nH=$\x7bI}\n`;
  expect(written({ 'rl.env': text })['rl.env']).toMatch(
    /^# mine\nA=b c\nD=e\n\nF=g\nH=\$\{I\}\n#.*\nDEBUG_HOST=0\.0\.0\.0\n$/,
  );
});
