import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { GrpcServerOptions, ServerCall } from '../../../../src/grpc/grpc-server.js';
import { CallRouter } from '../../../../src/grpc/h2-transport/call-router.js';
import { GrpcServerState } from '../../../../src/grpc/h2-transport/grpc-server-state.js';
import { BoundUnaryMethod, WaitingStreams } from '../../../../src/grpc/h2-transport/unary-call.js';
import type { RequestHead } from '../../../../src/h2/request-handler.js';
import { FakeTimerSource } from '../../../support/clock/fake-timer-source.js';
import { BYTES } from '../../../support/grpc/bytes-encoder.js';
import {
  FakeServerStream,
  grpcRequestHead,
  newFakeConnection,
} from '../../../support/grpc/fake-server-stream.js';
import { prefixed } from '../../../support/h2/http2-client.js';

const MIB = 1024 * 1024;
const ECHO = '/t.T/Echo';
const HOLD = '/t.T/Hold';

interface HeldCall {
  readonly info: ServerCall;
  resolve(message: Uint8Array): void;
  reject(error: unknown): void;
}

describe('CallRouter', () => {
  let timers: FakeTimerSource;
  let context: GrpcServerState;
  let router: CallRouter;
  let errors: unknown[];
  let held: HeldCall[];

  beforeEach(() => {
    timers = new FakeTimerSource();
    errors = [];
    held = [];
    const options = {
      maxReceiveMessageBytes: 4 * MIB,
      keptMessageBytes: 4 * MIB,
      receiveTimeoutMs: 60_000,
      monotonicMicros: () => timers.nowMs() * 1000,
      onError: (error: unknown) => errors.push(error),
    } as Partial<GrpcServerOptions> as GrpcServerOptions;
    context = new GrpcServerState(options, timers);
    router = new CallRouter(context);
    const waiting = new WaitingStreams();
    const echo = (bytes: Uint8Array, _call: unknown, start: number, end: number): Uint8Array =>
      bytes.subarray(start, end);
    const hold = (_message: Uint8Array, info: ServerCall): Promise<Uint8Array> =>
      new Promise((resolve, reject) => held.push({ info, resolve, reject }));
    router.add(ECHO, (head) => new BoundUnaryMethod(ECHO, echo, BYTES, head, context, waiting));
    router.add(HOLD, (head) => new BoundUnaryMethod(HOLD, hold, BYTES, head, context, waiting));
  });

  function open(
    head: RequestHead = grpcRequestHead(ECHO),
    connection = newFakeConnection(() => timers.nowMs()),
  ): FakeServerStream {
    const stream = new FakeServerStream(head, connection);
    router.onRequest(stream, false);
    return stream;
  }

  function send(stream: FakeServerStream, bytes: Buffer, endStream = false): void {
    router.onData(stream, bytes, 0, bytes.length, endStream);
  }

  function call(head: RequestHead, body = prefixed(Buffer.alloc(0))): FakeServerStream {
    const stream = open(head);
    send(stream, body, true);
    return stream;
  }

  /** Waits for promises and for the end of the event loop turn. */
  const settle = (): Promise<void> => setImmediate();

  describe('a unary call', () => {
    test('may end its request with trailers', () => {
      const stream = open();
      send(stream, prefixed(Buffer.of(1)));
      router.onTrailers(stream);
      expect(stream.body).toEqual(prefixed(Buffer.of(1)));
      const empty = open();
      router.onTrailers(empty);
      expect(empty.grpcStatus).toBe('12');
    });

    test('keeps the content type of its request', () => {
      const head = { ...grpcRequestHead(ECHO), fields: ['content-type', 'application/grpc+proto'] };
      expect(call(head).headers[0]?.['content-type']).toBe('application/grpc+proto');
    });

    test('distinguishes alternating request headers', () => {
      const heads = Array.from({ length: 20 }, (_unused, index) =>
        grpcRequestHead(index % 2 === 0 ? ECHO : `/t.T/${index}`),
      );
      for (let round = 0; round < 3; round++) {
        heads.forEach((head, index) => {
          const stream = new FakeServerStream(head);
          router.onRequest(stream, true);
          expect(stream.grpcMessage).toContain(index % 2 === 0 ? 'no request message' : `/t.T/${index}`);
        });
      }
    });

    test('reports an error of a handler after the caller has disconnected', async () => {
      const stream = call(grpcRequestHead(HOLD));
      router.onReset(stream);
      const error = new Error('secret');
      held[0]?.reject(error);
      await settle();
      expect(errors).toEqual([error]);
      expect(stream.headers).toEqual([]);
      expect(context.running).toBe(0);
    });
  });

  describe('a deadline', () => {
    const withTimeout = (path: string, timeout: string): RequestHead =>
      grpcRequestHead(path, 'grpc-timeout', timeout);

    test('is measured from the headers of a request that arrives in parts', async () => {
      const stream = open(withTimeout(HOLD, '100m'));
      await settle();
      const cameMicros = timers.nowMs() * 1000;
      timers.advance(60);
      send(stream, prefixed(Buffer.alloc(0)), true);
      expect(held[0]?.info.deadlineMicros).toBe(cameMicros + 100_000);
      timers.advance(39);
      expect(stream.ended).toBe(false);
      timers.advance(2);
      expect(stream.grpcStatus).toBe('4');
    });
  });

  describe('an incomplete request', () => {
    test('has no such limit while its handler runs', async () => {
      const stream = open(grpcRequestHead(HOLD));
      await settle();
      send(stream, prefixed(Buffer.alloc(0)), true);
      timers.advance(1e6);
      expect(stream.ended).toBe(false);
      held[0]?.resolve(Buffer.alloc(0));
      await settle();
      expect(stream.grpcStatus).toBe('0');
    });
  });

  describe('a request that is not a gRPC call', () => {
    const plain: RequestHead = { ...grpcRequestHead('/'), fields: ['content-type', 'text/plain'] };
    const text = /^This port accepts only gRPC.*\n$/;

    test('is answered at its end, with a line of text', () => {
      const stream = open(plain);
      send(stream, Buffer.alloc(1000));
      expect(stream).toMatchObject({ headers: [], consumedBytes: 1000 });
      send(stream, Buffer.alloc(0), true);
      expect(stream.headers).toEqual([{ ':status': '415', 'content-type': 'text/plain; charset=utf-8' }]);
      expect(String(stream.body)).toMatch(text);
      const trailers = open(plain);
      router.onTrailers(trailers);
      expect(trailers.headers[0]?.[':status']).toBe('415');
      expect(context.deadlines.size).toBe(0);
    });

    test('is answered early if its end is late or missing', () => {
      const slow = open(plain);
      timers.advance(60_001);
      expect(slow.ended).toBe(true);
      const long = open(plain);
      for (let sent = 0; sent <= 4 * MIB && !long.ended; sent += MIB / 4) send(long, Buffer.alloc(MIB / 4));
      expect(String(long.body)).toMatch(text);
      const gone = open(plain);
      router.onReset(gone);
      expect(context.deadlines.size).toBe(0);
    });

    test('gets no body for HEAD', () => {
      const stream = new FakeServerStream({ ...plain, method: 'HEAD' });
      router.onRequest(stream, true);
      expect(stream).toMatchObject({ headers: [{ ':status': '415' }], data: [], ended: true });
    });
  });
});
