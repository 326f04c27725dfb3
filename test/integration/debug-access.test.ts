/* Tests who can administer weir through the debug port of a real server. */
import { writeFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { describe, expect, test } from '@jest/globals';
import { newAdminToken } from '../../src/admin/admin-tokens.js';
import { type HttpRequestOptions, httpRequest } from '../support/process/http-client.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { CertificateAuthority } from '../support/tls/certificates.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';

const POLICY = `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: hour, requests_per_unit: 5 }
`;
const ENTRIES = [{ key: 'customer', value: 'acme' }];
const RESET = { action: 'reset', domain: 'shop', entries: ENTRIES };
const SHOW = { action: 'show', domain: 'shop', entries: ENTRIES };

const reader = newAdminToken('dashboard', 'read');
const writer = newAdminToken('on-call', 'write');
const folder = new TempDir();
let server: WeirServer | undefined;

function ask(question: object, headers: OutgoingHttpHeaders = {}, options: HttpRequestOptions = {}) {
  return httpRequest(server?.debugPort ?? 0, '/buckets', {
    method: 'POST',
    body: JSON.stringify(question),
    ...options,
    headers: { 'content-type': 'application/json', host: 'localhost', ...headers },
  });
}

test('on loopback, every local client can administer weir, but no page of another site', async () => {
  server = await startWeir({ policy: POLICY });
  expect((await ask(RESET)).status).toBe(200);
  const rebound = await ask(RESET, { host: `evil.example:${server.debugPort}` });
  expect([rebound.status, rebound.body]).toEqual([421, expect.stringContaining('use localhost')]);
  expect((await ask(RESET, { origin: 'http://evil.example' })).status).toBe(403);
  expect((await ask(RESET, { 'content-type': 'text/plain' })).status).toBe(415);
  expect((await ask(RESET, {}, { method: 'PUT' })).status).toBe(405);
  const preflight = await ask(RESET, { origin: 'http://evil.example' }, { method: 'OPTIONS' });
  expect(preflight.headers.filter(([name]) => name.startsWith('access-control'))).toEqual([]);
  const metrics = (await httpRequest(server.httpPort, '/metrics')).body;
  expect(metrics).toContain('weir_admin_total{action="access",result="refused"} 3\n');
  // One log line covers all refusals.
  expect(server.log().filter(({ msg }) => /^refused an administrative request/.test(String(msg)))).toEqual([
    expect.objectContaining({ peer: '127.0.0.1', status: 421 }),
  ]);
});

test('on all addresses, calls that administer weir need a token, and the views need none', async () => {
  server = await startWeir({ policy: POLICY, env: { DEBUG_HOST: '0.0.0.0' } });
  const { status, body } = await ask(SHOW);
  expect([status, JSON.parse(body)]).toEqual([
    403,
    {
      error:
        'DEBUG_HOST is 0.0.0.0, so other machines can reach this port, but no tokens are configured; ' +
        'set ADMIN_TOKENS_FILE, or set DEBUG_HOST=127.0.0.1',
    },
  ]);
  for (const path of ['/rlconfig', '/stats', '/'])
    expect((await httpRequest(server.debugPort, path)).status).toBe(200);
});

describe('with tokens and TLS', () => {
  const authority = new CertificateAuthority();
  const { cert, key } = authority.issue('DNS:localhost,IP:127.0.0.1');
  const tokensFile = folder.join('tokens');
  const env = {
    DEBUG_HOST: '0.0.0.0',
    ADMIN_TOKENS_FILE: tokensFile,
    DEBUG_SERVER_TLS_CERT: folder.write('tls.crt', cert),
    DEBUG_SERVER_TLS_KEY: folder.write('tls.key', key),
    LOG_LEVEL: 'trace',
  };
  const bucket = (token: string, ...args: string[]) =>
    runToEnd(
      process.execPath,
      [WEIR_MAIN, 'bucket', ...args, '--address', `https://localhost:${server?.debugPort}`].concat([
        '--tls-ca',
        folder.write('ca.pem', authority.cert),
      ]),
      { bareEnvironment: true, env: { WEIR_ADMIN_TOKEN: token } },
    );

  test('a token grants its right until its line is removed, and no output shows it', async () => {
    writeFileSync(tokensFile, `${reader.line}\n${writer.line}\n`);
    server = await startWeir({ policy: POLICY, env });
    const over = { ca: authority.cert };
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    expect((await ask(SHOW, {}, over)).status).toBe(401);
    expect((await ask(SHOW, bearer(reader.token), over)).status).toBe(200);
    expect((await ask(RESET, bearer(reader.token), over)).status).toBe(403);
    // The views stay open, over TLS.
    expect((await httpRequest(server.debugPort, '/rlconfig', over)).status).toBe(200);
    const filled = await bucket(writer.token, 'reset', 'shop', 'customer=acme');
    expect(filled).toMatchObject({ code: 0 });
    const refused = await bucket(reader.token, 'reset', 'shop', 'customer=acme');
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('dashboard has only read permission'),
    });

    // weir check reads the policy of the server over TLS to explain why nothing was limited.
    const { grpcPort, debugPort } = server;
    const ports = { GRPC_PORT: String(grpcPort), DEBUG_PORT: String(debugPort) };
    const checked = await runToEnd(
      process.execPath,
      [WEIR_MAIN, 'check', '--domain', 'shop', 'custmer=acme'],
      { bareEnvironment: true, env: { ...env, ...ports } },
    );
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('did you mean customer?') });

    writeFileSync(tokensFile, `${reader.line}\n`);
    await waitFor('the token to be refused', async () => {
      const { status } = await ask(SHOW, bearer(writer.token), over);
      return status === 401 || undefined;
    });
    expect((await ask(SHOW, bearer(reader.token), over)).status).toBe(200);
    const metrics = (await httpRequest(server.httpPort, '/metrics')).body;
    const printed = [metrics, ...server.process.lines(), filled.stdout, refused.stderr].join('\n');
    expect(printed).toMatch(/"action":"reset","by":"on-call","peer":"127.0.0.1"/);
    for (const { token, line } of [reader, writer]) {
      expect(printed).not.toContain(token);
      expect(printed).not.toContain(line.slice(-64));
    }
  });

  test.each([
    [
      'tokens',
      { DEBUG_SERVER_TLS_CERT: '', DEBUG_SERVER_TLS_KEY: '' },
      /ADMIN_TOKENS_FILE: .*tokens:1: the line does not/,
    ],
    [
      'a key',
      { ADMIN_TOKENS_FILE: '', DEBUG_SERVER_TLS_KEY: env.DEBUG_SERVER_TLS_CERT },
      /DEBUG_SERVER_TLS_KEY: /,
    ],
  ])('a start fails if %s cannot be read', async (_, more, message) => {
    writeFileSync(tokensFile, writer.token);
    const { code, stderr } = await runToEnd(process.execPath, [WEIR_MAIN, 'serve'], {
      bareEnvironment: true,
      env: { ...env, ...more, GRPC_PORT: '0', PORT: '0', DEBUG_PORT: '0' },
    });
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    expect(stderr).not.toContain(writer.token);
  });
});
