/* Tables of plans whose TLS handshake fails, and a hash in Redis that disappears while weir reads it. */
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { loadPolicies } from '../../../src/config/files/load-policies.js';
import { HttpPlanSource } from '../../../src/config/sources/http-source.js';
import { PlanMirror } from '../../../src/config/sources/plan-mirror.js';
import { isRedisAddress, type PlanSource, storedFileOf } from '../../../src/config/sources/plan-source.js';
import { RedisPlanSource } from '../../../src/config/sources/redis-source.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';

const NEVER = new AbortController().signal;

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
});
afterEach(() => dir.remove());

function sourceOf(address: string): PlanSource {
  return isRedisAddress(address) ? new RedisPlanSource(address, '') : new HttpPlanSource(address, '');
}
const mirrorOf = (address: string, source = sourceOf(address), answerMs = 10_000): PlanMirror =>
  new PlanMirror(address, source, dir.join('cache'), answerMs);

describe.each([
  ['rediss', 'plans'],
  ['https', 'plans.csv'],
])('over TLS with %s', (scheme, path) => {
  let server: Server;
  const sockets = new Set<Socket>();
  async function listen(opened: Server): Promise<string> {
    server = opened;
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `${scheme}://localhost:${(server.address() as AddressInfo).port}/${path}`;
  }
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    await new Promise((resolve) => server.close(resolve));
  });

  test('a handshake that hangs ends in time', async () => {
    const address = await listen(createTcpServer());
    expect(await mirrorOf(address, sourceOf(address), 300).update(NEVER)).toEqual({
      kind: 'failed',
      reason: 'timeout',
      message: 'the answer was not complete after 0.3 s',
    });
  });

  test('a certificate of an unknown authority names the setting', async () => {
    const issued = new CertificateAuthority().issue('DNS:localhost');
    const address = await listen(createTlsServer(issued));
    expect(await mirrorOf(address).update(NEVER)).toEqual({
      kind: 'failed',
      reason: 'connection',
      message:
        'the certificate of the server is not accepted (unable to verify the first certificate); for a private CA, ' +
        'set NODE_EXTRA_CA_CERTS',
    });
  });

  test('a server that does not speak TLS', async () => {
    const address = await listen(createTcpServer((socket) => socket.write('-ERR what is this\r\n')));
    expect(await mirrorOf(address).update(NEVER)).toEqual({
      kind: 'failed',
      reason: 'connection',
      message: 'the TLS handshake failed (wrong version number); check that the port speaks TLS',
    });
  });
});

describe('a hash in Redis', () => {
  const ROWS = 5000;
  let server: RedisServer;
  let redis: Redis;
  let address: string;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port, '127.0.0.1');
    redis.on('error', () => {});
    address = `redis://127.0.0.1:${server.port}/plans`;
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  const fill = (): Promise<unknown> =>
    redis.hset('plans', ...Array.from({ length: ROWS }, (_, at) => [`t${at}`, '{"calls":2}']).flat());
  /** Returns a mirror that reads a part of the rows, and then does `act` before it reads the others. */
  function interrupted(act: () => Promise<unknown>): PlanMirror {
    const source = sourceOf(address);
    async function* chunks(all: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      let parts = 0;
      for await (const part of all) {
        yield part;
        if (parts++ === 0) await act();
      }
    }
    return mirrorOf(address, {
      open: async (isStored, signal) => {
        const answer = await source.open(isStored, signal);
        return answer === 'unchanged' || answer.kind === 'failed'
          ? answer
          : { ...answer, chunks: chunks(answer.chunks) };
      },
      failureOf: (error) => source.failureOf(error),
    });
  }
  function load() {
    const policy = dir.write(
      'policy.yaml',
      `domain: d\nplans: { by: tenant, from: "${address}" }\n` +
        'descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: calls, default: 1 } } }]\n',
    );
    const { policySet, errors, warnings } = loadPolicies([policy], { plansCache: dir.join('cache') });
    const plans = policySet.domains.get('d')?.plans;
    return { errors, warnings, rows: plans?.rowCount, refused: plans?.refused };
  }

  test('that is deleted while weir reads it keeps its rows', async () => {
    await fill();
    expect(await mirrorOf(address).update(NEVER)).toBe('changed');
    expect(await interrupted(() => redis.del('plans')).update(NEVER)).toEqual({
      kind: 'failed',
      reason: 'transfer',
      message: 'the hash was deleted while weir read it',
    });
    expect(load().rows).toBe(ROWS);
  });

  test('of a server that is killed while weir reads it, and comes back', async () => {
    await fill();
    expect(await mirrorOf(address).update(NEVER)).toBe('changed');
    const mirror = mirrorOf(address);
    expect(await interrupted(() => server.kill()).update(NEVER)).toEqual({
      kind: 'failed',
      reason: 'transfer',
      message: 'the connection was closed',
    });
    expect(await mirror.update(NEVER)).toMatchObject({ kind: 'failed', reason: 'connection' });
    await server.restart();
    expect(await mirror.update(NEVER)).toMatchObject({
      reason: 'content',
      message: 'the hash does not exist',
    });
    expect(load().rows).toBe(ROWS);
    await fill();
    // The new process may return the fields in another order.
    expect(await mirror.update(NEVER)).toMatch(/changed/);
    expect(load()).toMatchObject({ rows: ROWS, refused: 0 });
  });

  test('with fields that HSCAN returns twice has one row for each', async () => {
    await fill();
    await mirrorOf(address).update(NEVER);
    const line = '["t7","{\\"calls\\":2}"]\n';
    dir.write(`cache/${storedFileOf(address)}`, `${line}["x","{\\"calls\\":3}"]\n${line}`);
    expect(load()).toEqual({ errors: [], warnings: [], rows: 2, refused: 0 });
  });
});
