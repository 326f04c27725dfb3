/*
 * Tests the connection to a management server: lost and reconnected, over TLS, at the start, and with several workers.
 */
import { copyFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { credentials } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { AdsStream } from '../../src/config/xds/ads-client.js';
import { createDiscoveryCodec } from '../../src/config/xds/discovery.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { StartStopped } from '../../src/server/start-error.js';
import { closeLater } from '../support/process/close-later.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { CertificateAuthority } from '../support/tls/certificates.js';
import {
  acknowledges,
  ask,
  followPolicies,
  limitOf,
  logged,
  startXdsWeir,
  untilLogged,
  untilRequest,
  untilServing,
  windowConfig,
} from '../support/weir/xds-weir.js';
import { AdsServer } from '../support/xds/ads-server.js';
import { startXdsServer, type XdsServer } from '../support/xds/xds-server.js';

const describeXds = optionalToolPath('xds-server') === undefined ? describe.skip : describe;

async function isListening(port: number): Promise<boolean> {
  return httpRequest(port, '/healthcheck').then(
    () => true,
    () => false,
  );
}

const LOST = 'lost the connection to the management server';
const UNREACHABLE = 'cannot reach the management server';
const WAITING = 'waiting for the first configuration from the management server';

test('limits log lines about responses that a management server sends unasked', async () => {
  const server = await new AdsServer().start();
  const policies = await followPolicies(server.port);
  const peer = await waitFor('the stream', () => server.peers[0]);
  peer.send({ versionInfo: '1', nonce: '1', typeUrl: 'x'.repeat(1_000_000), resources: [] });
  const line = await untilLogged(policies, 'the management server sent resources that weir did not request');
  expect(String(line['typeUrl']).length).toBe(200);
});

describeXds('a lost management server', () => {
  test('leaves the configuration in effect, and the next server learns its version', async () => {
    const before = await startXdsServer();
    await before.setSnapshot('v1', [windowConfig('one', 3)]);
    const policies = await followPolicies(before.port, { XDS_CLIENT_BACKOFF_JITTER: 'false' });
    await untilRequest(before, 'the ACK', acknowledges('v1'));
    await before.stop();
    expect(await untilLogged(policies, LOST)).toMatchObject({
      pauseMs: 100,
      reason: expect.stringMatching(/^UNAVAILABLE: /),
    });
    await waitFor('three attempts', () => logged(policies, UNREACHABLE).length >= 3);
    expect(logged(policies, UNREACHABLE).slice(0, 3)).toMatchObject([
      { pauseMs: 200, reason: expect.stringMatching(/ECONNREFUSED/) },
      { pauseMs: 400 },
      { pauseMs: 400 },
    ]);
    expect(policies.limitOf('one')).toBe(3);

    const after = await startXdsServer({ port: before.port });
    await after.setSnapshot('v2', [windowConfig('one', 5)]);
    await untilRequest(after, 'the ACK', acknowledges('v2'));
    expect((await after.requests())[0]).toMatchObject({ version: 'v1', nonce: '' });
    expect(policies.limitOf('one')).toBe(5);

    // A configuration was accepted, so the next pause is short again.
    await after.stop();
    await waitFor('the second loss', () => logged(policies, LOST).length === 2);
    expect(logged(policies, LOST)[1]).toMatchObject({ pauseMs: 100 });
  });

  test('a connection without an answer is closed', async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const accepted: Socket[] = [];
    silent.on('connection', (socket) => accepted.push(socket));
    closeLater(silent, () => {
      for (const socket of accepted) socket.destroy();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const policies = await followPolicies(port, { CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '200ms' });
    expect(await untilLogged(policies, UNREACHABLE)).toMatchObject({ reason: 'no connection within 200 ms' });
  });

  test('a server that hangs is detected', async () => {
    const xds = await startXdsServer();
    const events: string[] = [];
    const stream = new AdsStream(
      {
        target: `127.0.0.1:${xds.port}`,
        credentials: async () => credentials.createInsecure(),
        serverName: undefined,
        headers: new Map(),
        connectTimeoutMs: 0,
        maxMessageBytes: 1000,
        keepaliveMs: 100,
        keepaliveTimeoutMs: 200,
      },
      credentials.createInsecure(),
      createDiscoveryCodec(),
      {
        connected: () => events.push('connected'),
        received: () => {},
        ended: (reason) => events.push(reason),
      },
    );
    closeLater(stream, () => stream.close());
    await waitFor('the connection', () => events.length > 0);
    xds.process.signal('SIGSTOP');
    await waitFor('the end', () => events.length > 1);
    expect(events).toEqual(['connected', expect.stringMatching(/^UNAVAILABLE: /)]);
  });
});

describeXds('the start', () => {
  test('waits for the first valid configuration, with all ports closed', async () => {
    const xds = await startXdsServer();
    const weir = await startXdsWeir(xds.port);
    expect(await untilLogged(weir, WAITING)).toMatchObject({ server: `127.0.0.1:${xds.port}` });
    await untilRequest(xds, 'the first request', ({ version }) => version === '');
    await xds.setSnapshot('v1', [windowConfig('', 3)]);
    await untilRequest(xds, 'the NACK', ({ error }) => error !== undefined);
    expect(await isListening(weir.httpPort)).toBe(false);
    expect((await ask(weir, 'one', 'k=v')).code).toBe(STATUS.UNAVAILABLE);
    await xds.setSnapshot('v2', [windowConfig('one', 3)]);
    await untilServing(weir);
    expect(await limitOf(weir, 'one')).toBe(3);
  });

  test('SIGTERM ends a wait for a server that has none', async () => {
    const xds = await startXdsServer();
    const weir = await startXdsWeir(xds.port);
    await untilLogged(weir, WAITING);
    expect(await weir.stop()).toEqual({ code: 0, signal: null });
    expect(weir.process.stderr()).toBe('');
  });

  test('a signal before the first connection ends the start', async () => {
    const stopping = new AbortController();
    const opened = followPolicies(1, { FORCE_START_WITHOUT_INITIAL_CONFIG: 'false' }, stopping.signal);
    stopping.abort();
    await expect(opened).rejects.toThrow(StartStopped);
  });

  test('if forced, answers with an error until a configuration arrives; SIGHUP ends a pause', async () => {
    const [port = 0] = await freePorts(1);
    const weir = await startXdsWeir(port, {
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '1h',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '1h',
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
    });
    await untilLogged(weir, UNREACHABLE);
    await untilServing(weir);
    expect(await ask(weir, 'one', 'k=v')).toMatchObject({ details: 'no rate limit configuration loaded' });
    const xds = await startXdsServer({ port });
    await xds.setSnapshot('v1', [windowConfig('one', 3)]);
    weir.process.signal('SIGHUP');
    await untilRequest(xds, 'the ACK', acknowledges('v1'));
    expect(await limitOf(weir, 'one')).toBe(3);
  });

  test.each([
    ['CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS', 'bad name:x'],
    ['CONFIG_GRPC_XDS_CLIENT_TLS_CERT', '/cert.pem'],
  ])('is refused with %s=%s', async (name, value) => {
    await expect(followPolicies(1, { [name]: value })).rejects.toMatchObject({
      lines: [expect.stringMatching(new RegExp(`^${name}`))],
    });
  });

  test('several workers get the first configuration, and the next', async () => {
    const xds = await startXdsServer();
    const redis = await startRedis();
    const weir = await startXdsWeir(xds.port, {
      WORKERS: '2',
      REDIS_URL: `127.0.0.1:${redis.port}`,
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
    });
    await untilServing(weir);
    for (const limit of [3, 5]) {
      await xds.setSnapshot(`v${limit}`, [windowConfig('one', limit)]);
      // Workers accept connections in turn.
      await waitFor('both workers to know it', async () => {
        const limits = [await limitOf(weir, 'one'), await limitOf(weir, 'one')];
        return limits.every((one) => one === limit);
      });
    }
  });
});

describeXds('TLS', () => {
  const folder = new TempDir();
  const files = {} as Record<'ca' | 'otherCa' | 'cert' | 'key' | 'clientCert' | 'clientKey', string>;
  beforeAll(() => {
    const authority = new CertificateAuthority();
    const server = authority.issue('DNS:xds.test,URI:spiffe://test/xds,IP:127.0.0.1');
    const client = authority.issue('URI:spiffe://test/weir');
    Object.assign(files, {
      ca: folder.write('ca.pem', authority.cert),
      otherCa: folder.write('other-ca.pem', new CertificateAuthority('other CA').cert),
      cert: folder.write('cert.pem', server.cert),
      key: folder.write('key.pem', server.key),
      clientCert: folder.write('client.pem', client.cert),
      clientKey: folder.write('client-key.pem', client.key),
    });
  });

  const settings = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: files.ca,
    ...more,
  });

  async function tlsServer(clientCa?: string): Promise<XdsServer> {
    const { cert, key } = files;
    const xds = await startXdsServer({ tls: { cert, key, ...(clientCa !== undefined && { clientCa }) } });
    await xds.setSnapshot('v1', [windowConfig('one', 3)]);
    return xds;
  }

  test('the certificate holds a URI', async () => {
    const xds = await tlsServer();
    const san = 'spiffe://test/xds';
    const policies = await followPolicies(xds.port, settings({ CONFIG_GRPC_XDS_SERVER_TLS_SAN: san }));
    await untilRequest(xds, 'the ACK', acknowledges('v1'));
    expect(policies.limitOf('one')).toBe(3);
  });

  test("the certificate must be valid for the server's address", async () => {
    const authority = new CertificateAuthority();
    const { cert, key } = authority.issue('DNS:xds.test,IP:127.0.0.2');
    const tls = { cert: folder.write('elsewhere.pem', cert), key: folder.write('elsewhere-key.pem', key) };
    const xds = await startXdsServer({ tls });
    const ca = folder.write('elsewhere-ca.pem', authority.cert);
    const policies = await followPolicies(xds.port, settings({ CONFIG_GRPC_XDS_SERVER_TLS_CACERT: ca }));
    const { reason } = await untilLogged(policies, UNREACHABLE);
    expect(reason).toContain("IP: 127.0.0.1 is not in the cert's list");
    expect(await xds.requests()).toEqual([]);
  });

  test.each([
    [
      'a name that the certificate does not hold',
      'other.test',
      undefined,
      /does not contain the name other\.test/,
    ],
    ['another issuer', undefined, 'otherCa', /certificate/],
  ] as const)('fails with %s', async (_, san, ca, reason) => {
    const xds = await tlsServer();
    const policies = await followPolicies(
      xds.port,
      settings({
        CONFIG_GRPC_XDS_SERVER_TLS_SAN: san,
        ...(ca !== undefined && { CONFIG_GRPC_XDS_SERVER_TLS_CACERT: files[ca] }),
      }),
    );
    expect(await untilLogged(policies, UNREACHABLE)).toMatchObject({ reason: expect.stringMatching(reason) });
    expect(await xds.requests()).toEqual([]);
  });

  test('a server that requires a certificate gets ours, and a renewed one at the next connection', async () => {
    const { ca, clientCert, clientKey } = files;
    const xds = await tlsServer(ca);
    const stranger = new CertificateAuthority('stranger').issue('URI:spiffe://test/weir');
    const cert = folder.write('renewed.pem', stranger.cert);
    const key = folder.write('renewed-key.pem', stranger.key);
    const weir = await startXdsWeir(
      xds.port,
      settings({ CONFIG_GRPC_XDS_CLIENT_TLS_CERT: cert, CONFIG_GRPC_XDS_CLIENT_TLS_KEY: key }),
    );
    await waitFor('a refusal', () => [...logged(weir, LOST), ...logged(weir, UNREACHABLE)].length > 0);
    expect(await xds.requests()).toEqual([]);
    // Between the two writes, key and certificate do not match, and a connection attempt fails.
    for (const [path, source] of [
      [cert, clientCert],
      [key, clientKey],
    ] as const) {
      copyFileSync(source, path);
    }
    await untilServing(weir);
    expect(await limitOf(weir, 'one')).toBe(3);
    // The server has an IP address, which is not a valid name in a handshake; Node.js would warn about it.
    expect(weir.process.stderr()).not.toContain('DEP0123');
  });
});
