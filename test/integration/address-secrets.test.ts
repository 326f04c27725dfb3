/* Checks that nothing that weir prints or serves shows the login, query or fragment of an address. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { closeLater } from '../support/process/close-later.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { runCommands } from '../support/weir/commands.js';
import { startWeir } from '../support/weir/weir.js';

/** Returns a policy with a table of plans in Redis. */
const policyOf = (from: string): string => `domain: shop
plans: { by: tenant, from: "${from}", default: free, define: { free: { rate: 1 }, gold: { rate: 2 } } }
descriptors: [{ key: tenant, rate_limit: { unit: minute, requests_per_unit: { plan: rate } } }]
`;

test('a server with a login in each address', async () => {
  // Refuses every request, so that weir reports each address as unavailable.
  const refusing = createServer((_request, response) => response.writeHead(403).end());
  await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
  closeLater(refusing, () => refusing.close());
  const host = `127.0.0.1:${(refusing.address() as AddressInfo).port}`;
  const weir = await startWeir({
    policy: policyOf(`redis://SECRET@${host}/plans?db=1`),
    env: {
      REDIS_URL: `redis://SECRET:SECRET@${host}/1`,
      TRACING_ENABLED: 'true',
      TRACING_SAMPLING_RATE: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://SECRET:SECRET@${host}/otlp?key=SECRET`,
      OTEL_BSP_SCHEDULE_DELAY: '10',
      LOG_LEVEL: 'trace',
      WORKERS: '1',
    },
    untilHealthy: false,
  });
  const logs = (text: string) => waitFor(text, () => weir.process.stdout().includes(text));
  await logs(`the plans at redis://${host}/plans could not be read`);
  await logs(`redis://${host}/1`);
  const client = new RlsClient(weir.grpcPort);
  await client.ask('shop', [descriptor(['tenant=acme'])]);
  await logs('the OpenTelemetry collector does not accept spans');

  const list = (await httpRequest(weir.debugPort, '/')).body;
  const paths = [...list.matchAll(/^(\/[a-z/]*)/gm)].map(([, path = '']) => path);
  expect(paths).toEqual(expect.arrayContaining(['/rlconfig', '/stats', '/overview']));
  const shown = [];
  for (const path of [...paths, '/rlconfig?format=json', '/rlconfig?format=tree']) {
    if (path !== '/events') shown.push((await httpRequest(weir.debugPort, path)).body);
  }
  for (const path of ['/metrics', '/healthcheck?detail']) {
    shown.push((await httpRequest(weir.httpPort, path)).body);
  }
  expect(shown.join('\n')).toContain(`redis://${host}/plans`);
  expect(`${shown.join('\n')}${weir.process.stdout()}${weir.process.stderr()}`).not.toContain('SECRET');
});

test('commands', async () => {
  const folder = new TempDir();
  folder.write('old.yaml', policyOf('redis://SECRET@store.test/plans?db=1'));
  folder.write('new.yaml', policyOf('redis://SECRET2@store.test/plans?db=2'));
  folder.write('signed.yaml', policyOf('https://SECRET:SECRET@store.test/plans.csv?X-Amz-Signature=SECRET'));
  const url = 'https://SECRET:SECRET@store.test:1/x?key=SECRET#SECRET';
  const bare = 'SECRET:SECRET@store.test:1?key=SECRET';
  const results = await runCommands(
    [
      ['check-config', 'old.yaml'],
      ['check-config', 'signed.yaml'],
      ['check-config', url],
      ['explain', 'old.yaml', 'tenant=acme'],
      ['explain', 'old.yaml', 'tenant=acme', '--json'],
      ['explain', url, 'tenant=acme'],
      ['diff', 'old.yaml', 'new.yaml'],
      ['diff', 'old.yaml', 'new.yaml', '--json'],
      ['check', '--ca', url, 'a=b'],
      ['bucket', 'show', '--token-file', url, 'a=b'],
      ['bucket', 'show', '--entries', url, 'a=b'],
      ['migrate', url],
      ...[url, bare].flatMap((address) => [
        ['check', '--address', address, 'a=b'],
        ['check', '--debug', address, 'a=b'],
        ['health', '--address', address],
        ['top', '--address', address],
        ['top', '--all', address],
        ['bucket', 'show', '--address', address, 'a=b'],
        ['ratelimit-client', '-dial_string', address, '-domain', 'd', '-descriptors', 'a=b'],
      ]),
    ].map((args) => ({ args, folder: folder.path, environment: {} })),
  );
  for (const { stdout, stderr } of results) expect(stdout + stderr).not.toContain('SECRET');
});
