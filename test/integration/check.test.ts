import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { checkCommand } from '../../src/cli/check.js';
import { CODE, type RateLimitResponse } from '../../src/codec/messages.js';
import { GrpcError, STATUS } from '../../src/grpc/grpc-server.js';
import { type Decide, type RlsServer, startRlsServer } from '../support/grpc/rls-server.js';
import { freePorts } from '../support/process/free-port.js';

const ok: RateLimitResponse = {
  overallCode: CODE.OK,
  statuses: [
    {
      code: CODE.OK,
      currentLimit: { name: '', requestsPerUnit: 100, unit: 0 },
      limitRemaining: 99,
      durationUntilResetSeconds: 1,
    },
  ],
  responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '100' }],
  requestHeadersToAdd: [],
  rawBody: undefined,
  dynamicMetadata: undefined,
};

describe('weir check', () => {
  let server: RlsServer | undefined;
  let http: Server | undefined;
  afterEach(async () => {
    await server?.server.close();
    http?.close();
    http?.closeAllConnections();
  });

  const start = async (decide: Decide): Promise<string> => {
    server = await startRlsServer(decide);
    return server.address;
  };
  const check = async (...args: string[]) => {
    let out = '';
    let err = '';
    const code = await checkCommand(args, {
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      colour: false,
    });
    return { code, out, err };
  };

  test('sends what it was told and shows the answer', async () => {
    const address = await start(() => ok);
    const { code, out, err } = await check(
      ...`--address ${address} --domain d --hits 3 a=1 b= + c=2`.split(' '),
    );
    expect(server?.requests).toEqual([
      {
        domain: 'd',
        descriptors: [
          {
            entries: [
              { key: 'a', value: '1' },
              { key: 'b', value: '' },
            ],
            limit: undefined,
            hitsAddend: undefined,
            isNegativeHits: false,
          },
          {
            entries: [{ key: 'c', value: '2' }],
            limit: undefined,
            hitsAddend: undefined,
            isNegativeHits: false,
          },
        ],
        hitsAddend: 3,
      },
    ]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^OK {18}1\nOVER_LIMIT {10}0\n/);
    expect(out).toMatch(
      /descriptor 1: OK, limit 100, remaining 99, reset in 1 s\n {2}x-ratelimit-limit: 100\n/,
    );
    expect(out).toMatch(/latency {2}p50 \d+\.\d\d ms, p99 \d+\.\d\d ms\n$/);
  });

  test('makes as many calls as asked, never more at once than asked', async () => {
    let running = 0;
    let most = 0;
    const address = await start(async (_request, i) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return { ...ok, overallCode: i % 2 === 0 ? CODE.OK : CODE.OVER_LIMIT };
    });
    const { code, out } = await check(
      '--address',
      address,
      '--count',
      '200',
      '--concurrency',
      '8',
      '--json',
      'a=b',
    );
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ ok: 100, overLimit: 100, errors: {} });
    expect(server?.requests).toHaveLength(200);
    expect(most).toBe(8);
  });

  test('counts failed calls by code, shows the rest, and exits with 1', async () => {
    const address = await start((_request, i) => {
      if (i > 0) throw new GrpcError(STATUS.INVALID_ARGUMENT, 'descriptor 1 has an entry\nwithout key');
      return ok;
    });
    const { code, out, err } = await check('--address', address, '--count', '3', 'a=b');
    expect(code).toBe(1);
    expect(out).toMatch(/^OK {18}1\nOVER_LIMIT {10}0\nINVALID_ARGUMENT {4}2\n/);
    expect(err).toBe(
      'weir check: 2 of 3 calls failed: INVALID_ARGUMENT: descriptor 1 has an entry without key\n',
    );
  });

  test('says that nothing listens', async () => {
    const [port] = await freePorts(1);
    const { code, err } = await check('--address', `127.0.0.1:${port}`, 'a=b');
    expect({ code, err }).toEqual({
      code: 1,
      err:
        `weir check: 1 of 1 calls failed: nothing listens on 127.0.0.1:${port}; start weir serve, or ` +
        'name the server with --address\n',
    });
  });

  test('says that there is no such host', async () => {
    const { code, err } = await check('--address', 'weir.invalid:8081', 'a=b');
    expect(code).toBe(1);
    expect(err).toContain('weir.invalid:8081 cannot be resolved; name the server with --address');
  });

  test('says that no answer came in time', async () => {
    const address = await start(() => new Promise(() => {}));
    const { code, err } = await check('--address', address, '--timeout', '50ms', 'a=b');
    expect(code).toBe(1);
    expect(err).toContain(`no answer from ${address} within 50 ms; look at the server, or raise --timeout`);
  });

  test('says that the store is the likely cause of UNAVAILABLE', async () => {
    const address = await start(() => {
      throw new GrpcError(STATUS.UNAVAILABLE, 'the store is unavailable');
    });
    const { code, err } = await check('--address', address, 'a=b');
    expect(code).toBe(1);
    expect(err).toContain('the store is unavailable; check that');
  });

  test('says that it is not a gRPC port', async () => {
    const web = createServer((_request, response) => response.end('web'));
    http = web;
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
    const { port } = web.address() as AddressInfo;
    const { code, err } = await check('--address', `127.0.0.1:${port}`, 'a=b');
    expect(code).toBe(1);
    expect(err).toContain(`check that 127.0.0.1:${port} is the server's gRPC port`);
  });

  test('tells how far it is when it takes long', async () => {
    let release = (): void => {};
    const told = new Promise<void>((resolve) => {
      release = resolve;
    });
    const address = await start(async () => {
      await told;
      return ok;
    });
    let err = '';
    const code = await checkCommand(['--address', address, '--timeout', '1m', 'a=b'], {
      out: () => {},
      err: (text) => {
        err += text;
        release();
      },
      colour: false,
    });
    expect({ code, err }).toEqual({ code: 0, err: 'weir check: 0 of 1 calls done\n' });
  });

  test('prints help with 0 and wrong arguments with 2', async () => {
    expect(await check('--help')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Usage: weir check/),
    });
    expect(await check('nothing')).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(/^weir check: "nothing" is no entry; .*\nTry weir check --help\.\n$/),
    });
  });
});
