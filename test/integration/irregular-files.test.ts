/* Tests settings, options and policies whose paths lead to something other than a file. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { newAdminToken } from '../../src/admin/admin-tokens.js';
import { closeLater } from '../support/process/close-later.js';
import { httpRequest } from '../support/process/http-client.js';
import { type IrregularFile, replaceWith } from '../support/process/irregular-files.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { CertificateAuthority } from '../support/tls/certificates.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir, WEIR_MAIN } from '../support/weir/weir.js';

const [PIPE, DEVICE, GIGABYTE] = [
  'a pipe without a writer',
  'an endless device',
  'a file of a gigabyte',
] as const satisfies readonly IrregularFile[];
const POLICY = `domain: shop
derive: [{ entry: tenant, from: [api_key], sha256_file: keys.yaml }]
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 1000000 } }
`;
const BODY = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'api_key', value: 'k' }] }] });
const token = newAdminToken('on-call', 'read');
const authority = new CertificateAuthority();
const { cert, key } = authority.issue('IP:127.0.0.1');

const host = new CommandHost();
let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
});

const peakBytes = (pid: number) =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

test.each([PIPE, GIGABYTE])('%s instead of a watched file delays no decision', async (kind) => {
  const redis = await startRedis({ args: ['--requirepass', 'secret'] });
  const keys = folder.write('keys.yaml', `${'0'.repeat(64)}: acme\n`);
  const files = {
    ADMIN_TOKENS_FILE: folder.write('tokens', `${token.line}\n`),
    GRPC_SERVER_TLS_CERT: folder.write('grpc.crt', cert),
    GRPC_CLIENT_TLS_CACERT: folder.write('ca.crt', authority.cert),
    DEBUG_SERVER_TLS_CERT: folder.write('debug.crt', cert),
    CONFIG_PATH: folder.write('shop.yaml', POLICY),
    REDIS_AUTH_FILE: folder.write('login', 'secret'),
  };
  const tlsKey = folder.write('tls.key', key);
  const server = await startWeir({
    env: {
      ...files,
      REDIS_URL: `127.0.0.1:${redis.port}`,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_KEY: tlsKey,
      DEBUG_SERVER_TLS_KEY: tlsKey,
    },
  });
  const decided = async () =>
    (await httpRequest(server.httpPort, '/json', { method: 'POST', body: BODY })).status;
  expect(await decided()).toBe(200);
  const before = peakBytes(server.process.pid);
  for (const path of [...Object.values(files), keys]) replaceWith(path, kind);
  for (const [name, path] of [
    ['ADMIN_TOKENS_FILE', files.ADMIN_TOKENS_FILE],
    ['GRPC_SERVER_TLS_CERT', files.GRPC_SERVER_TLS_CERT],
    ['DEBUG_SERVER_TLS_CERT', files.DEBUG_SERVER_TLS_CERT],
    ['REDIS_AUTH_FILE', files.REDIS_AUTH_FILE],
    ['', files.CONFIG_PATH],
  ] as const) {
    await waitFor(`a line about ${name} and ${path}`, async () => {
      expect(await decided()).toBe(200);
      const lines = server.process.lines();
      return lines.some((line) => line.includes(name) && line.includes(path)) || undefined;
    });
  }
  // The previous certificate and token are still in effect.
  const asked = await httpRequest(server.debugPort, '/buckets', {
    method: 'POST',
    ca: authority.cert,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token.token}` },
    body: JSON.stringify({ action: 'show', entries: [{ key: 'a', value: 'b' }] }),
  });
  expect(asked.status).toBe(200);
  expect(peakBytes(server.process.pid) - before).toBeLessThan(100e6);
});

describe('a pipe at the start', () => {
  type Row = readonly [variable: string, environment: Readonly<Record<string, string>>];
  const environmentOf = ([variable, environment]: Row) => {
    const path = folder.join('file');
    replaceWith(path, PIPE);
    return { GRPC_PORT: '0', PORT: '0', DEBUG_PORT: '0', ...environment, [variable]: path };
  };
  const expectRefused = ({ code, stderr }: { code: number | null; stderr: string }, variable: string) =>
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(
          `^weir: .*${variable}: cannot read ${folder.join('file')}: the path is not a regular file; ` +
            'specify a regular file',
          'm',
        ),
      ),
    ]);

  test.each<Row>([
    ['ADMIN_TOKENS_FILE', {}],
    ['GRPC_SERVER_TLS_CERT', { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_KEY: 'k' }],
    ['REDIS_AUTH_FILE', { REDIS_URL: '127.0.0.1:1' }],
    ['REDIS_TLS_CACERT', { REDIS_URL: 'rediss://127.0.0.1:1' }],
    ['PROMETHEUS_MAPPER_YAML', { USE_PROMETHEUS: 'true' }],
    [
      'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
      { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_USE_TLS: '1' },
    ],
  ])('%s ends the start', async (...row) => {
    const environment = environmentOf(row);
    expectRefused(await host.run({ args: ['serve'], folder: folder.path, environment }), row[0]);
  });

  // The OpenTelemetry variables belong to the process.
  test.each<Row>([
    ['OTEL_EXPORTER_OTLP_CERTIFICATE', { TRACING_ENABLED: 'true' }],
    ['OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY', { TRACING_ENABLED: 'true', TRACING_EXPORTER_PROTOCOL: 'grpc' }],
  ])('%s ends the start', async (...row) => {
    const env = environmentOf(row);
    const options = { bareEnvironment: true, env };
    expectRefused(await runToEnd(process.execPath, [WEIR_MAIN, 'serve'], options), row[0]);
  });
});

test.each([
  [['check', '--address', '127.0.0.1:1', 'a=b'], '--ca'],
  [['bucket', 'show', 'shop', 'a=b'], '--token-file'],
  [['bucket', 'show', 'shop', 'a=b'], '--tls-ca'],
  [['bucket', 'show', 'shop'], '--entries'],
  [['check-config'], ''],
])('weir %j rejects a pipe as %s', async (command, option) => {
  const path = folder.join('file.yaml');
  replaceWith(path, PIPE);
  const args = option === '' ? [path] : [option, path];
  const { code, printed } = await host.run({ args: [...command, ...args], folder: folder.path });
  expect(`${code} ${printed}`).toMatch(/^[12] .*is not a regular file; /s);
});

test('reads endless standard input up to a bound', () => {
  const zeros = openSync('/dev/zero', 'r');
  closeLater(zeros, closeSync);
  // Without a limit (2 GiB, in KiB), a reader without a bound would take all memory of the machine.
  const limited = ['-c', 'ulimit -d 2097152 && exec "$@"', 'sh', process.execPath, WEIR_MAIN];
  const { status, stderr } = spawnSync('sh', [...limited, 'bucket', 'show', 'shop', '--entries', '-'], {
    stdio: [zeros, 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([
    2,
    expect.stringContaining('--entries: standard input has more than 1048576 bytes'),
  ]);
});

describe.each([PIPE, DEVICE])('weir migrate rejects %s', (kind) => {
  const COMPOSE = 'services: { limits: { image: "envoyproxy/ratelimit:master", env_file: limits.env } }\n';

  test.each(['limits.env', '.env', 'config/shop.yaml'])('as %s', async (name) => {
    writeFileSync(folder.join('compose.yaml'), COMPOSE);
    folder.write('limits.env', 'REDIS_URL=redis:6379\n');
    folder.write('config/other.yaml', 'domain: other\n');
    rmSync(folder.join(name), { force: true });
    replaceWith(folder.join(name), kind);
    const { printed } = await host.run({ args: ['migrate', 'compose.yaml', 'config'], folder: folder.path });
    expect(printed.replaceAll(/\s+/g, ' ')).toMatch(/is not a regular file; specify a regular file/);
  });
});
