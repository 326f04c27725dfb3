/* Tests `weir migrate` with installations of envoyproxy/ratelimit that set REDIS_TYPE=SENTINEL. */
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { WEIR_MAIN } from '../../support/weir/weir.js';

const folder = new TempDir();
afterAll(() => folder.remove());

const POLICY = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
`;

describe('an installation of envoyproxy/ratelimit with Sentinels needs no decision', () => {
  const variables = {
    USE_STATSD: 'false',
    LOG_LEVEL: 'debug',
    LOG_FORMAT: 'json',
    DEBUG_HOST: '127.0.0.1',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_TIMEOUT: '10s',
    RUNTIME_ROOT: '/data',
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    REDIS_TYPE: 'SENTINEL',
    REDIS_URL: 'mymaster,sentinel-1:26379,sentinel-2:26379,sentinel-3:26379',
  };
  const moves = async (file: string): Promise<string> => {
    const command = [WEIR_MAIN, 'migrate', file, '--write', `written-${file}`];
    const { code, stdout, stderr } = await runToEnd(process.execPath, command, { cwd: folder.path });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('\nNo decisions are needed.\n');
    return readFileSync(folder.join(`written-${file}`, file), 'utf8');
  };

  test('a compose file works unchanged', async () => {
    const sentinel = { image: 'redis:7.4', command: 'redis-server /etc/sentinel.conf --sentinel' };
    const service = {
      image: 'envoyproxy/ratelimit:4d2efd61',
      environment: { ...variables, REDIS_AUTH: 'a', REDIS_SENTINEL_AUTH: 'b' },
      volumes: ['./policies:/data/ratelimit/config'],
      depends_on: ['sentinel-1'],
    };
    folder.write('sentinels.yaml', stringify({ services: { ratelimit: service, 'sentinel-1': sentinel } }));
    folder.write('policies/shop', POLICY);
    const { services } = parse(await moves('sentinels.yaml'));
    expect(services.ratelimit).toEqual({ ...service, image: expect.stringMatching(/^weir:/) });
  });

  test.each([
    ['that the manifest names', { value: variables.REDIS_URL }],
    ['that a Secret names', { valueFrom: { secretKeyRef: { name: 'redis', key: 'url' } } }],
  ])('a Deployment with Sentinels %s works unchanged', async (_, url) => {
    const { REDIS_URL: __, ...others } = variables;
    const secret = (key: string) => ({ valueFrom: { secretKeyRef: { name: 'redis', key } } });
    const env = [
      ...Object.entries(others).map(([name, value]) => ({ name, value })),
      { name: 'REDIS_URL', ...url },
      { name: 'REDIS_AUTH', ...secret('password') },
      { name: 'REDIS_SENTINEL_AUTH', ...secret('sentinel-password') },
    ];
    const container = {
      name: 'main',
      image: 'envoyproxy/ratelimit:4d2efd61',
      command: ['/bin/ratelimit'],
      env,
      volumeMounts: [{ name: 'config', mountPath: '/data/ratelimit/config' }],
    };
    const labels = { app: 'limits' };
    const spec = { containers: [container], volumes: [{ name: 'config', configMap: { name: 'policies' } }] };
    const objects = [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'policies' }, data: { 'shop.yaml': POLICY } },
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'limits' },
        spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
      },
    ];
    const file = `limits-${'value' in url ? 'plain' : 'secret'}.yaml`;
    folder.write(file, objects.map((object) => stringify(object)).join('---\n'));
    const after = parseAllDocuments(await moves(file)).map((document) => document.toJS());
    expect(after[1].spec.template.spec.containers).toEqual([
      { ...container, image: expect.stringMatching(/^weir:/) },
    ]);
  });
});
