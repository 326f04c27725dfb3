/* Changes of the image and variables keep the rest of the file. A file that cannot be changed is left to the user. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { editWorkload, splitTag } from '../../../../src/migrate/write/edit-workload.js';
import { Installations } from '../../../support/migrate/installations.js';

const files = new Installations();
afterAll(() => files.remove());

const VARIABLES = { LOG_LEVEL: 'WARN', DEBUG_HOST: '0.0.0.0' };

/** Returns the text after a change to the image of weir. */
function edited(text: string, variables: Readonly<Record<string, string>> = VARIABLES): string | undefined {
  const { inputs, pick } = files.good({ 'file.yaml': text });
  if (pick === undefined) throw new Error('nothing was picked');
  return editWorkload(pick.workload, inputs, { image: 'host:5000/weir:0.1.0', variables });
}

const IMAGE = 'envoyproxy/ratelimit:4d2efd61';
const GATEWAY = 'apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyGateway\nrateLimit: {}\n';
const POD = (containers: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata: { name: p }\nspec:\n  containers:\n${containers}`;

test.each([
  [
    'compose, lines, comments',
    `services:\n  r: # it\n    image: ${IMAGE} # old\n` +
      `    environment:\n      # first\n      - A=b\n  x: { image: y }\n`,
    'services:\n  r: # it\n    image: host:5000/weir:0.1.0 # old\n    environment:\n      # first\n' +
      '      - LOG_LEVEL=WARN\n      - DEBUG_HOST=0.0.0.0\n      - A=b\n  x: { image: y }\n',
  ],
  [
    'compose, lists not indented, Windows',
    `services:\r\n  r:\r\n    image: '${IMAGE}'\r\n    environment:\r\n    - A=b\r\n`,
    'services:\r\n  r:\r\n    image: "host:5000/weir:0.1.0"\r\n    environment:\r\n    - LOG_LEVEL=WARN\n' +
      '    - DEBUG_HOST=0.0.0.0\n    - A=b\r\n',
  ],
  [
    'compose, a mapping, and a build',
    'services:\n  r:\n    build:\n      context: .\n\n      args: [a]\n' +
      '    # next\n    command: /bin/ratelimit\n    environment:\n      A: b\n',
    'services:\n  r:\n    image: host:5000/weir:0.1.0\n    # build:\n' +
      '    #   context: .\n\n    #   args: [a]\n    # next\n    command: /bin/ratelimit\n' +
      '    environment:\n      LOG_LEVEL: WARN\n      DEBUG_HOST: "0.0.0.0"\n      A: b\n',
  ],
  [
    'compose, no variables yet',
    'services:\n  r:\n    command: [/bin/ratelimit]\n    build: .',
    'services:\n  r:\n    environment:\n      LOG_LEVEL: WARN\n' +
      '      DEBUG_HOST: "0.0.0.0"\n    image: host:5000/weir:0.1.0\n' +
      '    command: [/bin/ratelimit]\n    # build: .',
  ],
  [
    'compose in JSON',
    `{"services": {"r": {"image": "${IMAGE}", "environment": {}}}}`,
    '{"services": {"r": {"image": "host:5000/weir:0.1.0", ' +
      '"environment": {"LOG_LEVEL": "WARN", "DEBUG_HOST": "0.0.0.0"}}}}',
  ],
  [
    'Kubernetes',
    `---\n${POD(
      `    - name: a\n      image: b\n    - image: ${IMAGE}\n      env: [{ name: A, value: b }]\n`,
    )}---\n# end\n`,
    `---\n${POD(
      '    - name: a\n      image: b\n    - image: host:5000/weir:0.1.0\n      env: [' +
        '{"name":"LOG_LEVEL","value":"WARN"}, {"name":"DEBUG_HOST","value":"0.0.0.0"}, { name: A, value: b }]\n',
    )}---\n# end\n`,
  ],
  [
    'Kubernetes, no variables yet',
    POD(`    - name: a\n      image: ${IMAGE}\n`),
    POD(
      '    - env:\n        - name: LOG_LEVEL\n          value: WARN\n' +
        '        - name: DEBUG_HOST\n          value: "0.0.0.0"\n' +
        '      name: a\n      image: host:5000/weir:0.1.0\n',
    ),
  ],
  [
    'Envoy Gateway in a ConfigMap',
    `apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    other\n  b: |-\n${GATEWAY.replaceAll(/^(?=.)/gm, '    ')}`,
    'apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    other\n  b: |-\n' +
      '    provider:\n      kubernetes:\n        rateLimitDeployment:\n' +
      '          container:\n            env:\n              - name: LOG_LEVEL\n                value: WARN\n' +
      '              - name: DEBUG_HOST\n                value: "0.0.0.0"\n            image: host:5000/weir:0.1.0\n' +
      GATEWAY.replaceAll(/^(?=.)/gm, '    '),
  ],
])('%s', (_name, text, expected) => expect(edited(text)).toBe(expected));

test('chart values have a separate repository and tag', () => {
  expect(edited(`image:\n  repository: envoyproxy/ratelimit\n  tag: a\n`, {})).toBe(
    'image:\n  repository: host:5000/weir\n  tag: "0.1.0"\n',
  );
  expect(edited(`image: ${IMAGE}\n`, {})).toBe('image: host:5000/weir:0.1.0\n');
  expect(edited('image: { repository: envoyproxy/ratelimit }\n', {})).toBe(
    'image: {"tag": "0.1.0", repository: host:5000/weir }\n',
  );
});

describe('changes for the user', () => {
  test.each([
    [
      'variables of several services',
      `x: &env { A: b }\nservices:\n  r: { image: "${IMAGE}", environment: *env }\n  s: { environment: *env }\n`,
    ],
    [
      'an image of several services',
      `x: &base\n  image: ${IMAGE}\nservices:\n  r:\n    <<: *base\n` +
        `    command: /bin/ratelimit\n  s:\n    <<: *base\n    command: other\n`,
    ],
    [
      'a configuration in quotes',
      `apiVersion: v1\nkind: ConfigMap\ndata: { a: ${JSON.stringify(GATEWAY)} }\n`,
    ],
    ['nothing where variables go', `services:\n  r:\n    image: ${IMAGE}\n    environment:\n`],
  ])('%s', (_name, text) => {
    const { inputs, pick } = files.good({ 'file.yaml': text }, /services/.test(text) ? 'r' : undefined);
    const target = { image: 'weir:0.1.0', variables: VARIABLES };
    expect(pick && editWorkload(pick.workload, inputs, target)).toBeUndefined();
  });
});

test.each([
  ['weir', ['weir', 'latest']],
  ['weir:1', ['weir', '1']],
  ['host:5000/weir', ['host:5000/weir', 'latest']],
  ['host:5000/a/weir:1.2', ['host:5000/a/weir', '1.2']],
])('name and tag of %s', (image, expected) => expect(splitTag(image)).toEqual(expected));
