/*
 * Tests requests on the wire: split messages and prefixes, compression, header fields; and the encoding of responses.
 */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { GrpcError, STATUS } from '../../../src/grpc/grpc-server.js';
import { BYTES } from '../../support/grpc/bytes-encoder.js';
import { openSession, openStream, post, prefixed, streamEnd } from '../../support/h2/http2-client.js';
import { ECHO, Fixture, HOLD } from './fixture.js';

const LIMIT = 1_000_000;

/** Returns a message that is compressed with gzip, with its prefix. */
function gzipped(message: Buffer): Buffer {
  const framed = prefixed(gzipSync(message));
  framed[0] = 1;
  return framed;
}

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture();
});

describe('requests', () => {
  const message = Buffer.from('a message of some length');

  test.each([1, 4, 5, 6, 20])('may be cut at byte %d', async (cut) => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const stream = openStream(session, ECHO);
    const end = streamEnd(stream);
    const bytes = prefixed(message);
    await new Promise((resolve) => stream.write(bytes.subarray(0, cut), resolve));
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    stream.end(bytes.subarray(cut));
    expect(await end).toMatchObject({ grpcStatus: '0', body: bytes });
  });

  test.each([
    ['in its prefix', prefixed(message).subarray(0, 3)],
    ['after its prefix', prefixed(message).subarray(0, 5)],
    ['in its middle', prefixed(message).subarray(0, 9)],
  ])('are refused when the message ends %s', async (_name, bytes) => {
    const { port } = await fixture.listening();
    const end = await post(await openSession(port), ECHO, bytes);
    expect(end.grpcStatus).toBe('12');
    await fixture.expectToServe(port);
  });

  test('are kept only up to a bound', async () => {
    const { port } = await fixture.listening({ keptMessageBytes: 1000, maxReceiveMessageBytes: 100_000 });
    const session = await openSession(port);
    const long = randomBytes(100_000);
    const end = await post(session, ECHO, prefixed(long));
    expect(end).toMatchObject({ grpcStatus: '0', body: prefixed(long.subarray(0, 1000)) });
    expect((await post(session, ECHO, prefixed(randomBytes(100_001)))).grpcStatus).toBe('8');
  });

  test('may have more header fields than anybody reads', async () => {
    const { port } = await fixture.listening({ maxHeaderListBytes: 100_000 });
    const fields = Object.fromEntries(
      Array.from({ length: 100 }, (_unused, index) => [`x-field-${index}`, 'v'.repeat(500)]),
    );
    const end = await post(await openSession(port), ECHO, prefixed(message), fields);
    expect(end).toMatchObject({ grpcStatus: '0', body: prefixed(message) });
  });

  test('need no te: trailers', async () => {
    const { port } = await fixture.listening();
    const end = await post(await openSession(port), ECHO, prefixed(message), { te: undefined });
    expect(end.grpcStatus).toBe('0');
  });
});

describe('compressed requests', () => {
  const gzip = { 'grpc-encoding': 'gzip' };

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['a short message', Buffer.from('hello')],
    ['a message that compresses to a thousandth', Buffer.alloc(LIMIT, 7)],
    ['a message that does not compress', randomBytes(LIMIT)],
  ])('are inflated: %s', async (_name, message) => {
    const { port } = await fixture.listening({ keptMessageBytes: LIMIT });
    const end = await post(await openSession(port), ECHO, gzipped(message), gzip);
    expect(end.grpcStatus).toBe('0');
    expect(end.body.subarray(5).equals(message)).toBe(true);
  });

  test('may hold a message that is not compressed', async () => {
    const { port } = await fixture.listening();
    const end = await post(await openSession(port), ECHO, prefixed(Buffer.of(1)), gzip);
    expect(end).toMatchObject({ grpcStatus: '0', body: prefixed(Buffer.of(1)) });
  });

  test.each([
    ['compress to a thousandth', Buffer.alloc(50 * LIMIT, 7)],
    ['do not compress', randomBytes(LIMIT + 1)],
    ['do not compress, and are much longer', randomBytes(3 * LIMIT)],
  ])('are inflated up to the bytes that are kept, if they %s', async (_name, message) => {
    const { port } = await fixture.listening({ keptMessageBytes: LIMIT });
    const session = await openSession(port);
    const end = await post(session, ECHO, gzipped(message), gzip);
    expect(end.grpcStatus).toBe('0');
    expect(end.body.subarray(5).equals(message.subarray(0, LIMIT))).toBe(true);
    expect((await post(session, ECHO, gzipped(Buffer.of(1)), gzip)).grpcStatus).toBe('0');
  });

  test('are refused when they are no gzip', async () => {
    const { port } = await fixture.listening();
    const bytes = prefixed(Buffer.from('not gzip'));
    bytes[0] = 1;
    expect((await post(await openSession(port), ECHO, bytes, gzip)).grpcStatus).toBe('13');
    await fixture.expectToServe(port);
  });

  test('are refused in an encoding that nobody knows', async () => {
    const { port } = await fixture.listening();
    const end = await post(await openSession(port), ECHO, gzipped(Buffer.of(1)), {
      'grpc-encoding': 'x-other',
    });
    expect(end).toMatchObject({ httpStatus: 200, grpcStatus: '12' });
  });
});

describe('grpc-timeout', () => {
  test.each(['50000u', '50000000n', '50m'])('%s ends a call that takes longer', async (timeout) => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const end = await post(session, HOLD, prefixed(Buffer.alloc(0)), { 'grpc-timeout': timeout });
    expect(end).toMatchObject({ httpStatus: 200, grpcStatus: '4' });
  });

  test.each(['1H', '1M', '10S', '20000m'])('%s does not end one that is quick', async (timeout) => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const end = await post(session, ECHO, prefixed(Buffer.alloc(0)), { 'grpc-timeout': timeout });
    expect(end.grpcStatus).toBe('0');
  });

  test.each(['soon', '12', 'm'])('%s is no time', async (timeout) => {
    const { port } = await fixture.listening();
    const session = await openSession(port);
    const end = await post(session, HOLD, prefixed(Buffer.alloc(0)), { 'grpc-timeout': timeout });
    expect(end).toMatchObject({
      grpcStatus: '13',
      grpcMessage: expect.stringMatching(/^Invalid(%20| )grpc-timeout/),
    });
  });
});

describe('answers on the wire', () => {
  test('an error is one HEADERS frame, with a message in printable ASCII', async () => {
    const server = fixture.server();
    const fail = (): never => {
      throw new GrpcError(STATUS.RESOURCE_EXHAUSTED, '100% über\n');
    };
    server.addUnary('/test.Test/Fail', fail, BYTES);
    const port = await server.listen({ host: '127.0.0.1', port: 0 });
    const stream = openStream(await openSession(port), '/test.Test/Fail');
    let trailers = 0;
    stream.on('trailers', () => trailers++);
    const end = streamEnd(stream);
    stream.end(prefixed(Buffer.alloc(0)));
    expect(await end).toMatchObject({ httpStatus: 200, grpcStatus: '8', body: Buffer.alloc(0) });
    expect(trailers).toBe(0);
    const text = (await end).grpcMessage as string;
    expect(text).toMatch(/^[ -~]+$/);
    expect(decodeURIComponent(text)).toBe('100% über\n');
  });

  test('a message has its prefix and ends with trailers', async () => {
    const { port } = await fixture.listening();
    const stream = openStream(await openSession(port), ECHO);
    const [response, trailers] = [
      new Promise<object>((resolve) => stream.once('response', resolve)),
      new Promise<object>((resolve) => stream.once('trailers', resolve)),
    ];
    stream.resume().end(prefixed(Buffer.of(1)));
    expect(await response).toMatchObject({
      ':status': 200,
      'content-type': expect.stringMatching(/^application\/grpc/),
    });
    expect(await response).not.toHaveProperty('grpc-status');
    expect(await trailers).toMatchObject({ 'grpc-status': '0' });
  });

  test('names the method that it does not know', async () => {
    const { port } = await fixture.listening();
    expect(await fixture.client(port).unary('/test.Test/ä', Buffer.alloc(0))).toMatchObject({ code: 12 });
    expect(await fixture.client(port).unary('/test.Test/Other', Buffer.alloc(0))).toEqual({
      code: 12,
      details: 'The server does not implement the method /test.Test/Other',
    });
  });
});
