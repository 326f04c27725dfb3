import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http2';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { h2Limits } from '../../../src/grpc/h2-transport/h2-grpc-server.js';
import { frame, TYPE } from '../../support/h2/h2-frames.js';
import { openSession, openStream, post, prefixed, streamEnd } from '../../support/h2/http2-client.js';
import { callFrame, emptyMessageFrame } from '../../support/h2/raw-http2.js';
import { waitFor } from '../../support/process/wait-for.js';
import { ECHO, Fixture, HOLD } from './fixture.js';

/** Tests what the fast stack guarantees in addition to the contract of both stacks. */
describe('gRPC server: what the fast stack adds', () => {
  let fixture: Fixture;
  beforeEach(() => {
    fixture = new Fixture();
  });

  describe('half-sent requests', () => {
    test.each([
      ['nothing but the head', Buffer.alloc(0)],
      ['half a message', prefixed(Buffer.alloc(100)).subarray(0, 50)],
      ['a message without an end', prefixed(Buffer.alloc(100))],
    ])('end after a while: %s', async (_name, bytes) => {
      const { port } = await fixture.listening({ receiveTimeoutMs: 50 });
      const session = await openSession(port);
      const stream = openStream(session, ECHO);
      const end = streamEnd(stream);
      if (bytes.length > 0) stream.write(bytes);
      stream.once('response', () => stream.end());
      expect(await end).toMatchObject({ grpcStatus: '4', grpcMessage: 'the request did not arrive in time' });
      expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    });

    test('end soon after their own deadline if that is sooner', async () => {
      const { port } = await fixture.listening();
      const stream = openStream(await openSession(port), ECHO, { 'grpc-timeout': '50m' });
      const end = streamEnd(stream);
      stream.write(Buffer.of(0));
      stream.once('response', () => stream.end());
      expect(await end).toMatchObject({ grpcStatus: '4', grpcMessage: 'Deadline exceeded' });
    });

    test('are decided even if the rest arrives shortly after their deadline', async () => {
      const { port } = await fixture.listening();
      const session = await openSession(port);
      const stream = openStream(session, ECHO, { 'grpc-timeout': '50m' });
      const end = streamEnd(stream);
      const message = prefixed(Buffer.of(1));
      stream.write(message.subarray(0, 3));
      // A later call with the same timeout expires in its handler.
      const other = await post(session, HOLD, prefixed(Buffer.of(2)), { 'grpc-timeout': '50m' });
      expect(other).toMatchObject({ grpcStatus: '4', grpcMessage: 'Deadline exceeded' });
      stream.end(message.subarray(3));
      expect(await end).toMatchObject({ grpcStatus: '0', body: message });
    });

    test('of one connection hold no more than two messages of the largest size', async () => {
      const { port } = await fixture.listening();
      const session = await openSession(port);
      const half = prefixed(Buffer.alloc(4 * 1024 * 1024)).subarray(0, 3 * 1024 * 1024);
      const statuses: unknown[] = [];
      for (let i = 0; i < 4; i++) {
        const stream = openStream(session, ECHO);
        stream.once('response', (headers) => {
          statuses.push(headers['grpc-status']);
          stream.end();
        });
        stream.write(half);
      }
      // Two of the four fit. Until both others are refused, a small message may be refused, too.
      await waitFor('two refusals', () => statuses.length === 2);
      expect(statuses).toEqual(['8', '8']);
      expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
      await fixture.expectToServe(port);
    });
  });

  describe('what is no gRPC call', () => {
    test.each([
      [415, 'GET', 'text/html'],
      [415, 'POST', 'application/grpc-web+proto'],
      [415, 'POST', 'application/grpc+json'],
      [405, 'GET', 'application/grpc'],
    ])('is answered with %d and a line of text: %s %s', async (httpStatus, method, contentType) => {
      const { port } = await fixture.listening();
      const headers = { ':method': method, 'content-type': contentType };
      const stream = openStream(await openSession(port), ECHO, headers);
      // Node ends a GET request itself.
      if (method === 'POST') stream.end();
      const end = await streamEnd(stream);
      expect(end.httpStatus).toBe(httpStatus);
      expect(String(end.body)).toMatch(/^This port accepts only gRPC.*\n$/);
      expect(end.grpcStatus).toBeUndefined();
    });

    test('may also be a type with parameters, which is one', async () => {
      const { port } = await fixture.listening();
      const end = await post(await openSession(port), ECHO, prefixed(Buffer.of(1)), {
        'content-type': 'application/grpc; charset=utf-8',
      });
      expect(end.grpcStatus).toBe('0');
    });
  });

  test(
    'a compressed message without an encoding, or with a flag that nobody knows, is an error of the ' +
      'caller',
    async () => {
      const { port } = await fixture.listening();
      const session = await openSession(port);
      for (const flag of [1, 2, 255]) {
        const bytes = prefixed(Buffer.from('hello'));
        bytes[0] = flag;
        expect((await post(session, ECHO, bytes)).grpcStatus).toBe('13');
      }
    },
  );

  test('an encoding that nobody knows is refused whatever is compressed, with those that we know', async () => {
    const { port } = await fixture.listening();
    const stream = openStream(await openSession(port), ECHO, { 'grpc-encoding': 'br' });
    const [headers] = (await once(stream.end(prefixed(Buffer.of(1))), 'response')) as [IncomingHttpHeaders];
    expect(headers).toMatchObject({ 'grpc-status': '12', 'grpc-accept-encoding': 'identity,gzip' });
  });

  test('a stream of requests that ends within a message is an error', async () => {
    const { server, port } = await fixture.listening();
    const path = '/test.Test/Collect';
    server.addGenericMethod({
      path,
      requestStream: true,
      responseStream: false,
      begin: (call) => ({
        onMessage: () => {},
        onRequestEnd: () => {
          call.send(Buffer.alloc(0));
          call.end();
        },
      }),
    });
    const session = await openSession(port);
    const whole = prefixed(Buffer.alloc(10));
    expect((await post(session, path, whole)).grpcStatus).toBe('0');
    for (const cut of [3, 5, 14]) {
      const end = await post(session, path, Buffer.concat([whole, whole.subarray(0, cut)]));
      expect(end).toMatchObject({ grpcStatus: '13', grpcMessage: 'Received an incomplete message' });
    }
  });

  describe('while draining', () => {
    test('serves calls that were on their way when the peer was told', async () => {
      const { server, port } = await fixture.listening();
      const { raw, call } = await fixture.rawHeldCall(port);
      const drained = server.drain(600_000);
      const first = await raw.waitForFrame(TYPE.GOAWAY);
      expect(first.payload.readUInt32BE(0)).toBe(0x7fffffff);
      raw.send(callFrame(3, ECHO));
      raw.send(emptyMessageFrame(3));
      const message = await raw.waitForFrame(TYPE.DATA, 3);
      expect(message.payload).toEqual(Buffer.alloc(5));
      raw.acknowledgePings();
      await waitFor('a GOAWAY that names it', () =>
        raw.frames.find(({ type, payload }) => type === TYPE.GOAWAY && payload.readUInt32BE(0) === 3),
      );
      call.answer(Buffer.alloc(0));
      await drained;
    });

    test('does not wait for a handler whose caller has gone', async () => {
      const { server, port } = await fixture.listening();
      const { raw } = await fixture.rawHeldCall(port);
      raw.send(frame(TYPE.RST_STREAM, 0, 1, Buffer.of(0, 0, 0, 8)));
      await server.drain(600_000);
    });
  });

  test('lets a large answer wait for a slow reader', async () => {
    const { port } = await fixture.listening({
      maxReceiveMessageBytes: 6 * 1024 * 1024,
      keptMessageBytes: 6 * 1024 * 1024,
    });
    const message = Buffer.alloc(6 * 1024 * 1024, 7);
    const reply = await fixture.client(port).unary(ECHO, message);
    expect(reply.code === 0 && 'message' in reply && reply.message.equals(message)).toBe(true);
  });

  test('gives the engine the bounds of its options', () => {
    const limits = h2Limits({
      maxConcurrentStreams: 7,
      maxHeaderListBytes: 1_000_000,
      keptMessageBytes: 50_000_000,
    } as Parameters<typeof h2Limits>[0]);
    expect(limits).toMatchObject({ maxConcurrentStreams: 7, maxHeaderListBytes: 1_000_000 });
    expect(limits.maxHeaderBlockBytes).toBeGreaterThan(1_000_000);
    expect(limits.maxContinuations * limits.maxFrameBytes).toBeGreaterThan(limits.maxHeaderBlockBytes);
    expect(limits.maxOutputBytes).toBeGreaterThan(50_000_000);
  });
});
