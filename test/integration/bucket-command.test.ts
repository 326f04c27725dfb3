/* Tests weir bucket from a shell, with a real server: which server it calls, and with which token and transport. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { type TlsFiles, writeTlsFiles } from '../support/tls/tls-files.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: shop
descriptors:
  - { key: tenant, rate_limit: { name: tenants, token_bucket: { max_tokens: 10, tokens_per_fill: 1, fill_interval: 1h } } }
`;

const folder = new TempDir();
const host = new CommandHost();
let tls: TlsFiles;
let weir: WeirServer;
let readToken: string;

/** Runs `weir bucket`. */
const bucket = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  host.run({ args: ['bucket', ...args], folder: folder.path, environment });

beforeAll(async () => {
  tls = writeTlsFiles();
  const made = await bucket(['new-token', 'ann', 'read', '--json']);
  const { token, line } = JSON.parse(made.stdout) as { token: string; line: string };
  readToken = folder.write('token', `${token}\n`);
  weir = await startWeir({
    policy: POLICY,
    env: {
      ADMIN_TOKENS_FILE: folder.write('tokens', `${line}\n`),
      DEBUG_SERVER_TLS_CERT: tls.serverCert,
      DEBUG_SERVER_TLS_KEY: tls.serverKey,
    },
  });
});

describe('a server with tokens and TLS', () => {
  const show = ['show', 'shop', 'tenant=acme'];
  const address = (scheme = '') => ['--address', `${scheme}127.0.0.1:${weir.debugPort}`];
  const withToken = () => ['--token-file', readToken];

  test('in the same environment is recognised by its own certificate', async () => {
    const own = { DEBUG_PORT: String(weir.debugPort), DEBUG_SERVER_TLS_KEY: tls.serverKey };
    const shown = await bucket([...show, ...withToken()], { ...own, DEBUG_SERVER_TLS_CERT: tls.serverCert });
    expect(shown).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/\n +10 +10 .* tenant \(tenants\)\n/),
    });
    const other = await bucket([...show, ...withToken()], { ...own, DEBUG_SERVER_TLS_CERT: tls.clientCert });
    expect(other).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the server certificate differs from the certificate in'),
    });
  });

  test('that is named on the command line is verified by its issuers', async () => {
    const trusted = await bucket([...show, ...withToken(), ...address(), '--tls-ca', tls.ca]);
    expect(trusted).toMatchObject({ code: 0, stderr: '' });
    const unknown = await bucket([...show, ...withToken(), ...address('https://')]);
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('is not accepted') });
    expect(unknown.stderr).toContain('set --tls-ca to the file with the CA certificate');
    const clear = await bucket([...show, ...withToken(), ...address()]);
    expect(clear).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('if the port uses TLS, write https://'),
    });
  });

  test('reports a missing token, and a token without the right to act', async () => {
    const trusted = [...address(), '--tls-ca', tls.ca];
    const without = await bucket([...show, ...trusted]);
    expect(without).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/a token is required.*--token-file/),
    });
    const wrong = await bucket([...show, ...trusted], { WEIR_ADMIN_TOKEN: 'x'.repeat(40) });
    expect(wrong).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('does not contain this token'),
    });
    expect(wrong.stderr).not.toContain('xxx');
    const change = await bucket(['reset', 'shop', 'tenant=acme', ...trusted, ...withToken()]);
    expect(change).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the token ann has only read permission'),
    });
  });
});

test('weir top shows the denied callers, and --all counts a server with two names once', async () => {
  const client = new RlsClient(weir.grpcPort);
  for (let hit = 0; hit < 13; hit++) await client.ask('shop', [descriptor(['tenant=acme'])]);
  const address = (host: string) => `${host}:${weir.debugPort}`;
  const all = `${address('127.0.0.1')},dns:${address('localhost')}`;
  const words = [WEIR_MAIN, 'top', '--all', all, '--tls-ca', tls.ca, '--token-file', readToken];
  const shown = await runToEnd(process.execPath, words, { bareEnvironment: true });
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout).toMatch(
    /, 1 of 1 replicas\nexact numbers.*\n\nDENIED.*\n +3 +10 +100% {2}tenant {2}tenant=acme\n$/,
  );
});

test('new-token explains what it creates, and from what', async () => {
  const made = await bucket(['new-token', 'bob@shop', 'write']);
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(made.stdout).toMatch(
    /^The token.*\n {2}weir_[\w-]{43}\nThe line.*:\n {2}bob@shop write sha256:[\da-f]{64}\n$/,
  );
  expect(await bucket(['new-token', 'a b', 'write'])).toMatchObject({ code: 2, stdout: '' });
  expect(await bucket(['new-token', 'ann', 'all'])).toMatchObject({ code: 2, stdout: '' });
});

test('recognises other ports of weir by name', async () => {
  const ask = (port: number) => bucket(['show', 'tenant=acme', '--address', `127.0.0.1:${port}`]);
  expect(await ask(weir.grpcPort)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('speaks HTTP/2'),
  });
  expect(await ask(weir.httpPort)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/or this address is not its debug port/),
  });
});

test('reads entries from a file, so that no process list shows an API key', async () => {
  const entries = folder.write('entries', 'api_key=sekrit\n');
  const asked = await bucket(['show', 'shop', '--entries', entries, '--address', '127.0.0.1:1']);
  expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing listens') });
  const bad = await bucket(['show', 'shop', '--entries', folder.write('bad', 'a=b\nsekrit\n')]);
  expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining('line 2 in --entries is not') });
  expect(bad.stderr).not.toContain('sekrit');
});
