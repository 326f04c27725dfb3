/* Tables of plans whose TLS handshake fails, and a hash in Redis that disappears while weir reads it. */
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { loadPolicies } from '../../../src/config/files/load-policies.js';
import { RedisRows } from '../../../src/config/sources/redis-rows.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { redisClient } from '../../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
});

const rowsOf = (address: string, answerMs = 10_000): RedisRows => new RedisRows(address, '', answerMs);

describe('over TLS', () => {
  let server: Server;
  const sockets = new Set<Socket>();
  async function listen(opened: Server): Promise<string> {
    server = opened;
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `rediss://localhost:${(server.address() as AddressInfo).port}/plans`;
  }
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    await new Promise((resolve) => server.close(resolve));
  });

  test('a handshake that hangs ends in time', async () => {
    const address = await listen(createTcpServer());
    expect(await rowsOf(address, 300).update()).toEqual({
      kind: 'failed',
      reason: 'timeout',
      message: 'the answer was not complete after 0.3 s',
    });
  });

  test('a certificate of an unknown authority names the setting', async () => {
    const issued = new CertificateAuthority().issue('DNS:localhost');
    const address = await listen(createTlsServer(issued));
    expect(await rowsOf(address).update()).toEqual({
      kind: 'failed',
      reason: 'connection',
      message:
        'the certificate of the server is not accepted (unable to verify the first certificate); for a private CA, ' +
        'set NODE_EXTRA_CA_CERTS',
    });
  });

  test('a server that does not speak TLS', async () => {
    const address = await listen(createTcpServer((socket) => socket.write('-ERR what is this\r\n')));
    expect(await rowsOf(address).update()).toEqual({
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
    redis = redisClient(server.port);
    redis.on('error', () => {});
    address = `redis://127.0.0.1:${server.port}/plans`;
  });

  const fill = (): Promise<unknown> =>
    redis.hset('plans', ...Array.from({ length: ROWS }, (_, at) => [`t${at}`, '{"calls":2}']).flat());
  /** Reads a part of the rows, then does `act`, and then reads the others. */
  async function interrupt(rows: RedisRows, act: () => Promise<unknown>): Promise<unknown> {
    const { hscan } = Redis.prototype;
    let parts = 0;
    const spy = jest.spyOn(Redis.prototype, 'hscan');
    spy.mockImplementation(async function (this: Redis, ...args: Parameters<typeof hscan>) {
      const reply = await hscan.apply(this, args);
      if (parts++ === 0) await act();
      return reply;
    } as typeof hscan);
    try {
      return await rows.update();
    } finally {
      spy.mockRestore();
    }
  }
  function load({ bytes = [] }: Pick<RedisRows, 'bytes'>) {
    const policy = dir.write(
      'policy.yaml',
      `domain: d\nplans: { by: tenant, from: "${address}" }\n` +
        'descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: calls, default: 1 } } }]\n',
    );
    const { policySet, errors, warnings } = loadPolicies([policy], { rows: new Map([[address, bytes]]) });
    const plans = policySet.domains.get('d')?.plans;
    return { errors, warnings, rows: plans?.rowCount, refused: plans?.refused };
  }

  test('that is deleted while weir reads it keeps its rows', async () => {
    await fill();
    const rows = rowsOf(address);
    expect(await rows.update()).toBe('changed');
    expect(await interrupt(rows, () => redis.del('plans'))).toEqual({
      kind: 'failed',
      reason: 'transfer',
      message: 'the hash was deleted while weir read it',
    });
    expect(load(rows).rows).toBe(ROWS);
  });

  test.each([
    ['has a new row', () => redis.hset('plans', 'new', 'gold')],
    ['lacks a row', () => redis.hdel('plans', 't7')],
    ['has another version', () => redis.incr('plans:version')],
  ])('that %s when weir has read it keeps its rows', async (_, act) => {
    await fill();
    await redis.set('plans:version', '1');
    const rows = rowsOf(address);
    expect(await rows.update()).toBe('changed');
    const { bytes } = rows;
    await redis.hset('plans', 't1', '{"calls":3}');
    await redis.set('plans:version', '2');
    expect(await interrupt(rows, act)).toEqual({
      kind: 'failed',
      reason: 'transfer',
      message: 'the hash changed while weir read it',
    });
    expect(rows.bytes).toBe(bytes);
    expect(await rows.update()).toBe('changed');
    await redis.del('plans', 'plans:version');
  });

  test('of a server that is killed while weir reads it, and comes back', async () => {
    await fill();
    const rows = rowsOf(address);
    expect(await rows.update()).toBe('changed');
    expect(await interrupt(rows, () => server.kill())).toEqual({
      kind: 'failed',
      reason: 'transfer',
      message: 'the connection was closed',
    });
    expect(await rows.update()).toMatchObject({ kind: 'failed', reason: 'connection' });
    await server.restart();
    expect(await rows.update()).toMatchObject({
      reason: 'content',
      message: 'the hash does not exist',
    });
    expect(load(rows).rows).toBe(ROWS);
    await fill();
    // The new process may return the fields in another order.
    expect(await rows.update()).toMatch(/changed/);
    expect(load(rows)).toMatchObject({ rows: ROWS, refused: 0 });
  });

  test('with fields that HSCAN returns twice has one row for each', async () => {
    const line = '["t7","{\\"calls\\":2}"]\n';
    const bytes = [Buffer.from(`${line}["x","{\\"calls\\":3}"]\n${line}`)];
    expect(load({ bytes })).toEqual({ errors: [], warnings: [], rows: 2, refused: 0 });
  });
});
