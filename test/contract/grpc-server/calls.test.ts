/* Tests unary calls, their errors, deadlines and ends, and requests that are not gRPC calls. */
import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { GrpcError, STATUS } from '../../../src/grpc/grpc-server.js';
import { BYTES } from '../../support/grpc/bytes-encoder.js';
import { frame, TYPE } from '../../support/h2/h2-frames.js';
import {
  exchangeBytes,
  openSession,
  openStream,
  post,
  prefixed,
  streamEnd,
} from '../../support/h2/http2-client.js';
import { RawHttp2Client } from '../../support/h2/raw-http2.js';
import { waitFor } from '../../support/process/wait-for.js';
import { ECHO, Fixture, HOLD, NOW_MICROS } from './fixture.js';

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture();
});

const expectToServe = (port: number): Promise<void> => fixture.expectToServe(port);

describe('unary calls', () => {
  test.each([
    ['an empty message', Buffer.alloc(0)],
    ['a short message', Buffer.from('hello')],
    ['a message of many frames', Buffer.alloc(300_000, 7)],
  ])('answers %s at once', async (_name, message) => {
    const { port } = await fixture.listening();
    expect(await fixture.client(port).unary(ECHO, message)).toEqual({ code: 0, message });
  });

  test('takes answers that are plain Uint8Arrays, also views into larger ones', async () => {
    const server = fixture.server();
    server.addUnary('/test.Test/View', () => new Uint8Array([9, 1, 2, 9]).subarray(1, 3), BYTES);
    const port = await server.listen({ host: '127.0.0.1', port: 0 });
    expect(await fixture.client(port).unary('/test.Test/View', Buffer.alloc(0))).toEqual({
      code: 0,
      message: Buffer.of(1, 2),
    });
  });

  test('waits for a promise', async () => {
    const { port } = await fixture.listening();
    const reply = fixture.client(port).unary(HOLD, Buffer.from('x'));
    (await fixture.untilHeld()).answer(Buffer.from('later'));
    expect(await reply).toEqual({ code: 0, message: Buffer.from('later') });
  });

  test('answers many calls at once on one connection, each with its own', async () => {
    const { port } = await fixture.listening();
    const client = fixture.client(port);
    const messages = Array.from({ length: 500 }, (_unused, i) => Buffer.from(`call ${i}`));
    const replies = await Promise.all(messages.map((message) => client.unary(ECHO, message)));
    expect(replies).toEqual(messages.map((message) => ({ code: 0, message })));
  });

  test('refuses two handlers for one path', () => {
    const server = fixture.server();
    expect(() => server.addUnary(ECHO, (message) => message, BYTES)).toThrow(/Echo/);
  });
});

describe('errors', () => {
  const throwing = async (fail: () => Uint8Array | Promise<Uint8Array>): Promise<number> => {
    const server = fixture.server();
    server.addUnary('/test.Test/Fail', fail, BYTES);
    return server.listen({ host: '127.0.0.1', port: 0 });
  };
  const kinds: [string, (error: Error) => () => Promise<Uint8Array>][] = [
    [
      'thrown',
      (error) => () => {
        throw error;
      },
    ],
    ['rejected', (error) => () => Promise.reject(error)],
  ];

  test.each(kinds)('sends code and message of a %s GrpcError', async (_name, failWith) => {
    const error = new GrpcError(STATUS.INVALID_ARGUMENT, 'tenant "ä\n%" is 100% wrong \ud800.', {
      cause: new Error('secret'),
    });
    const port = await throwing(failWith(error));
    expect(await fixture.client(port).unary('/test.Test/Fail', Buffer.alloc(0))).toEqual({
      code: 3,
      details: 'tenant "ä\n%" is 100% wrong \ufffd.',
    });
    expect(fixture.errors).toEqual([]);
    await expectToServe(port);
  });

  test.each(kinds)('hides any other %s error and reports it', async (_name, failWith) => {
    const error = new Error('password is hunter2');
    const port = await throwing(failWith(error));
    expect(await fixture.client(port).unary('/test.Test/Fail', Buffer.alloc(0))).toEqual({
      code: 13,
      details: 'internal error',
    });
    expect(fixture.errors).toEqual([error]);
    await expectToServe(port);
  });

  test('answers an unknown method with UNIMPLEMENTED', async () => {
    const { port } = await fixture.listening();
    for (const path of ['/test.Test/Nothing', '/', '/test.Test/Echo/x']) {
      expect((await fixture.client(port).unary(path, Buffer.alloc(0))).code).toBe(12);
    }
    await expectToServe(port);
  });

  test.each(['application/json', 'text/plain', undefined])(
    'answers content type %s with HTTP 415',
    async (contentType) => {
      const { port } = await fixture.listening();
      const session = await openSession(port);
      const end = await post(session, ECHO, prefixed(Buffer.of(1)), { 'content-type': contentType });
      expect(end.httpStatus).toBe(415);
      await expectToServe(port);
    },
  );

  test.each(['application/grpc', 'application/grpc+proto'])('takes content type %s', async (contentType) => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const end = await post(session, ECHO, prefixed(Buffer.of(1)), { 'content-type': contentType });
    expect(end).toMatchObject({ httpStatus: 200, grpcStatus: '0', body: prefixed(Buffer.of(1)) });
  });

  test('answers a call without a message, and one with two, with an error', async () => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const two = Buffer.concat([prefixed(Buffer.of(1)), prefixed(Buffer.of(2))]);
    for (const body of [Buffer.alloc(0), two]) {
      const end = await post(session, ECHO, body);
      expect(end.grpcStatus).toBe('12');
    }
    await expectToServe(port);
  });
});

describe('what a handler knows of its call', () => {
  test('the deadline on the injected clock, from grpc-timeout', async () => {
    const { port } = await fixture.listening();
    void fixture.client(port).unary(HOLD, Buffer.alloc(0), { timeoutMs: 30_000 });
    const { info } = await fixture.untilHeld();
    expect(info.deadlineMicros).toBeGreaterThan(NOW_MICROS + 20_000_000);
    expect(info.deadlineMicros).toBeLessThanOrEqual(NOW_MICROS + 30_000_000);
  });

  test.each([undefined, '99999999H', '99999999S'])(
    'no near deadline for grpc-timeout %s',
    async (timeout) => {
      const { port } = await fixture.listening();
      const session = await openSession(port);
      const end = post(
        session,
        HOLD,
        prefixed(Buffer.alloc(0)),
        timeout === undefined ? {} : { 'grpc-timeout': timeout },
      );
      const { info, answer } = await fixture.untilHeld();
      expect(info.deadlineMicros).toBeGreaterThan(NOW_MICROS + 1e12);
      answer(Buffer.alloc(0));
      expect((await end).grpcStatus).toBe('0');
    },
  );

  test('that the time is up', async () => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const end = post(session, HOLD, prefixed(Buffer.alloc(0)), { 'grpc-timeout': '50m' });
    const { info, answer } = await fixture.untilHeld();
    expect(await end).toMatchObject({ grpcStatus: '4' });
    await waitFor('the call to count as cancelled', () => info.cancelled() || undefined);
    answer(Buffer.alloc(0));
    await expectToServe(port);
  });

  test('that the caller went away', async () => {
    const { port } = await fixture.listening();
    const call = fixture.client(port).start(HOLD, Buffer.alloc(0));
    const { info, answer } = await fixture.untilHeld();
    expect(info.cancelled()).toBe(false);
    call.cancel();
    await waitFor('the call to count as cancelled', () => info.cancelled() || undefined);
    answer(Buffer.from('nobody reads this'));
    expect((await call.reply).code).toBe(1);
    await expectToServe(port);
  });

  test('that the connection went away', async () => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    void post(session, HOLD, prefixed(Buffer.alloc(0)));
    const { info } = await fixture.untilHeld();
    session.destroy();
    await waitFor('the call to count as cancelled', () => info.cancelled() || undefined);
  });

  test('the peer', async () => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    void post(session, HOLD, prefixed(Buffer.alloc(0)));
    const { info } = await fixture.untilHeld();
    expect(info.peer).toBe(`127.0.0.1:${session.socket.localPort}`);
  });
});

describe('listening', () => {
  test('rejects a taken port with EADDRINUSE', async () => {
    const { port } = await fixture.listening();
    await expect(fixture.server().listen({ host: '127.0.0.1', port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
      port,
    });
    await expectToServe(port);
  });

  test('rejects an address that is not ours', async () => {
    await expect(fixture.server().listen({ host: '192.0.2.1', port: 0 })).rejects.toMatchObject({
      code: 'EADDRNOTAVAIL',
    });
  });

  test.each(['::', '::1'])('listens on %s', async (host) => {
    const server = fixture.server();
    const port = await server.listen({ host, port: 0 });
    const session = await openSession(port, {}, '[::1]');
    void post(session, HOLD, prefixed(Buffer.alloc(0)));
    expect((await fixture.untilHeld()).info.peer).toBe(`[::1]:${session.socket.localPort}`);
  });
});

describe('what is no gRPC call', () => {
  test.each([
    ['an HTTP/1.1 request', Buffer.from('GET / HTTP/1.1\r\nHost: weir\r\n\r\n')],
    ['a TLS greeting', Buffer.from('16030100c8010000c403036b', 'hex')],
    ['garbage', Buffer.alloc(5000, 0xa5)],
  ])('closes the connection on %s and serves on', async (_name, bytes) => {
    const { port } = await fixture.listening();
    await exchangeBytes(port, bytes);
    await waitFor('the report', () => fixture.errors[0]);
    expect(String(fixture.errors[0])).toMatch(/connection from 127\.0\.0\.1:\d+ does not speak HTTP\/2/);
    await expectToServe(port);
  });

  test('survives a broken frame in the middle of a connection', async () => {
    const { port } = await fixture.listening();
    const raw = new RawHttp2Client(port);
    await raw.acknowledgeSettings();
    raw.send(frame(TYPE.DATA, 0, 7, Buffer.of(1)));
    const goaway = await raw.waitForFrame(TYPE.GOAWAY);
    expect(goaway.payload.readUInt32BE(4)).not.toBe(0);
    await expectToServe(port);
  });

  test.each([
    ['x-secret', 'caf\xe9'],
    ['grpc-timeout', '\xff'],
    ['x-key-bin', '!!!'],
  ])('serves on after an odd %s header, and prints nothing of it', async (name, value) => {
    const printed = jest.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const { port } = await fixture.listening();
      const end = await post(await openSession(port), ECHO, prefixed(Buffer.of(1)), { [name]: value });
      expect(end.grpcStatus).toBeDefined();
      expect(printed).not.toHaveBeenCalled();
      await expectToServe(port);
    } finally {
      printed.mockRestore();
    }
  });

  test('survives a message that is cut off by the end of the connection', async () => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const stream = openStream(session, ECHO);
    const end = streamEnd(stream);
    stream.write(prefixed(Buffer.alloc(100)).subarray(0, 20));
    session.destroy();
    await end;
    await expectToServe(port);
  });

  test('answers a thousand pings', async () => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const ping = (): Promise<void> =>
      new Promise((resolve, reject) => session.ping((error) => (error === null ? resolve() : reject(error))));
    for (let i = 0; i < 100; i++) await Promise.all(Array.from({ length: 10 }, ping));
    await expectToServe(port);
  });
});
