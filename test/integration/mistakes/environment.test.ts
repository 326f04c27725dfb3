/* Tests the full log lines of weir about problems in its environment. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { mainRedis } from '../../../src/server/store/redis-options.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { freePorts } from '../../support/process/free-port.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { SingleRedisStore } from '../../support/redis/single-stores.js';
import { type TlsFiles, writeTlsFiles } from '../../support/tls/tls-files.js';
import { settingsOf } from '../../support/weir/settings.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { CUSTOMER, LIMIT } from './table.js';

describe('Redis', () => {
  let pem: TlsFiles;
  let http: Server;
  let ports: Readonly<Record<string, number>> = {};
  let store: SingleRedisStore | undefined;

  beforeAll(async () => {
    pem = writeTlsFiles();
    http = createServer().listen(0, '127.0.0.1');
    const [nobody = 0, tlsPort = 0] = await freePorts(2);
    const tls = ['--port', '0', '--tls-port', String(tlsPort), '--tls-auth-clients', 'no'];
    const [plain, evicting, locked] = await Promise.all([
      startRedis(),
      startRedis({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] }),
      startRedis({ args: ['--requirepass', 's3cret', '--user', 'guest', 'on', '>pw', '~*', '+ping'] }),
      startRedis({
        port: tlsPort,
        args: [...tls, '--tls-cert-file', pem.serverCert, '--tls-key-file', pem.serverKey],
      }),
    ]);
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(plain.port)] });
    ports = {
      plain: plain.port,
      evicting: evicting.port,
      locked: locked.port,
      secured: tlsPort,
      replica: replica.port,
      http: (http.address() as AddressInfo).port,
      nobody,
    };
  });
  afterEach(async () => store?.close());
  afterAll(async () => {
    http.close();
  });

  test.each([
    {
      what: 'no server listens',
      url: '127.0.0.1:<nobody>',
      prints: `error: Redis redis://127.0.0.1:<nobody> cannot be used, and weir keeps retrying: no server listens at this address; start Redis, or correct REDIS_URL (connect ECONNREFUSED 127.0.0.1:<nobody>)
`,
    },
    {
      what: 'a wrong password',
      url: '127.0.0.1:<locked>',
      env: { REDIS_AUTH: 'wr0ng' },
      prints: `error: Redis redis://127.0.0.1:<locked> cannot be used, and weir keeps retrying: it refuses the login; check REDIS_AUTH, REDIS_AUTH_FILE or the login in REDIS_URL (WRONGPASS invalid username-password pair or user is disabled.)
`,
    },
    {
      what: 'no password',
      url: '127.0.0.1:<locked>',
      prints: `error: Redis redis://127.0.0.1:<locked> cannot be used, and weir keeps retrying: it refuses the login; check REDIS_AUTH, REDIS_AUTH_FILE or the login in REDIS_URL (NOAUTH Authentication required.)
`,
    },
    {
      what: 'a user who may not do enough',
      url: 'redis://guest:pw@127.0.0.1:<locked>',
      prints: `error: Redis redis://127.0.0.1:<locked> cannot be used, and weir keeps retrying: it refuses a command; check the permissions of the user (NOPERM this user has no permissions to run the 'set' command)
`,
    },
    {
      what: 'clear text to TLS',
      url: '127.0.0.1:<secured>',
      prints: `error: Redis redis://127.0.0.1:<secured> cannot be used, and weir keeps retrying: check Redis's log and REDIS_TLS (read ECONNRESET)
`,
    },
    {
      what: 'TLS to clear text',
      url: 'rediss://127.0.0.1:<plain>',
      prints: `error: Redis rediss://127.0.0.1:<plain> cannot be used, and weir keeps retrying: it does not answer; check whether Redis hangs, REDIS_URL, and REDIS_TLS (connect ETIMEDOUT)
`,
    },
    {
      what: 'a certificate of an unknown issuer',
      url: 'rediss://127.0.0.1:<secured>',
      prints: `error: Redis rediss://127.0.0.1:<secured> cannot be used, and weir keeps retrying: check REDIS_TLS and the certificates (unable to verify the first certificate)
`,
    },
    {
      what: 'a replica',
      url: '127.0.0.1:<replica>',
      prints: `error: Redis redis://127.0.0.1:<replica> cannot be used, and weir keeps retrying: it is a replica and does not accept writes; check REDIS_URL (READONLY You can't write against a read only replica.)
`,
    },
    {
      what: 'one that evicts',
      url: '127.0.0.1:<evicting>',
      prints: `warn: Redis redis://127.0.0.1:<evicting> may evict buckets (maxmemory-policy allkeys-lru), which are then full again; set maxmemory-policy to noeviction
`,
    },
    {
      what: 'a server of HTTP',
      url: '127.0.0.1:<http>',
      prints: `error: Redis redis://127.0.0.1:<http> cannot be used, and weir keeps retrying: check whether REDIS_URL is the address of a Redis server and its database (Unknown RESP type 72 "H". Please report this.)
`,
    },
    {
      what: 'a database that it has not',
      url: 'redis://127.0.0.1:<plain>/99',
      prints: `error: Redis redis://127.0.0.1:<plain>/99 cannot be used, and weir keeps retrying: check whether REDIS_URL is the address of a Redis server and its database (ERR DB index is out of range)
`,
    },
  ])('$what', async ({ url, env, prints }) => {
    const names = Object.keys(ports);
    const filled = names.reduce((text, name) => text.replace(`<${name}>`, String(ports[name])), url);
    const settings = settingsOf({ REDIS_URL: filled, REDIS_TIMEOUT: '300ms', ...env });
    const log: string[] = [];
    store = new SingleRedisStore({
      ...mainRedis(settings),
      log: (level, message) => log.push(`${level}: ${message}`),
    });
    await waitFor('a line', () => log.some((line) => !line.startsWith('info')));
    const line = log.find((one) => !one.startsWith('info')) ?? '';
    const printed = names.reduce((text, name) => text.replaceAll(`:${ports[name]}`, `:<${name}>`), line);
    expect(`${printed}\n`).toBe(prints);
  });
});

describe('weir', () => {
  const folder = new TempDir();
  const servers: WeirServer[] = [];

  const start = async (...options: Parameters<typeof startWeir>): Promise<WeirServer> => {
    const server = await startWeir(...options);
    servers.push(server);
    return server;
  };
  /** Returns warnings and errors since line `from`, with their fields. */
  const warnings = (server: WeirServer, from = 0): readonly string[] =>
    server
      .log()
      .slice(from)
      .filter(({ level }) => level === 'warning' || level === 'error')
      .map(({ level, msg, '@message': _message, '@timestamp': _time, policy: _version, ...fields }) => {
        const text = `${level}: ${msg}${Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`}`;
        return text.replaceAll(folder.path, '<folder>');
      });

  test('variables without effect, and a directory without a policy', async () => {
    folder.write('empty/notes.txt', '');
    const server = await start({
      env: { CONFIG_PATH: folder.join('empty'), LOG_LEVL: 'debug', PROMETHEUS_ADDR: ':9090' },
    });
    const prints = `warning: PROMETHEUS_ADDR has no effect: set USE_PROMETHEUS=true, or unset this variable.
warning: LOG_LEVL is not a weir setting, so it has no effect. Did you mean LOG_LEVEL?
warning: <folder>/empty: the directory has no file that ends in .yaml or .yml, only notes.txt; specify the directory that contains the policies`;
    const printed = warnings(server).join('\n');
    expect(printed).toBe(prints);
  });

  test('requests without a limit', async () => {
    const server = await start({ policy: CUSTOMER + LIMIT });
    const client = new RlsClient(server.grpcPort);
    const entry = (key: string) => ({
      entries: [{ key, value: 'ann' }],
      limit: undefined,
      hitsAddend: undefined,
      isNegativeHits: false,
    });
    await client.ask('shpo', [entry('customer')]);
    await client.ask('shop', [entry('customr')]);
    client.close();
    await waitFor('two lines', () => warnings(server).length >= 2);
    const prints = `warning: no policy has this domain, so its requests are not overLimit: did you mean shop? If the domain should have no limits, create a policy file with on_unmatched: ignore {"domain":"shpo"}
warning: no rule matches this descriptor, so weir allows the descriptor without a limit: did you mean customer? Run weir explain to see how far the descriptor matches. If the descriptor should have no limit, set on_unmatched: ignore in the policy {"domain":"shop","keys":"customr"}`;
    const printed = warnings(server).join('\n');
    expect(printed).toBe(prints);
  });

  test('an invalid policy at run time', async () => {
    const path = folder.write('shop.yaml', CUSTOMER + LIMIT);
    const server = await start({ env: { CONFIG_PATH: path } });
    folder.write('shop.yaml', CUSTOMER + LIMIT.replace('10', '-1'));
    server.process.signal('SIGHUP');
    await server.process.waitForLine(/the policy on disk is invalid/);
    const prints = `error: <folder>/shop.yaml:4:52: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is -1; write a whole number from 0 to 4294967295, or replace the key with unlimited: true for no limit
error: the domain is invalid; the previous version stays in effect {"domain":"shop","files":["<folder>/shop.yaml"]}
error: the policy on disk is invalid: only valid domains were reloaded, and invalid domains keep their previous version; correct the errors above {"reason":"signal","errors":1,"domains":["shop"]}`;
    const printed = warnings(server).join('\n');
    expect(printed).toBe(prints);
  });
});
