import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { GenericMethod } from '../../../../src/grpc/generic-method.js';
import { type GrpcServerOptions, STATUS } from '../../../../src/grpc/grpc-server.js';
import { CallRouter } from '../../../../src/grpc/h2-transport/call-router.js';
import { GrpcServerState } from '../../../../src/grpc/h2-transport/grpc-server-state.js';
import { BoundStreamingMethod } from '../../../../src/grpc/h2-transport/streaming-call.js';
import { FakeTimerSource } from '../../../support/clock/fake-timer-source.js';
import {
  FakeServerStream,
  grpcRequestHead,
  newFakeConnection,
} from '../../../support/grpc/fake-server-stream.js';
import { prefixed } from '../../../support/h2/http2-client.js';
import { waitFor } from '../../../support/process/wait-for.js';

const WATCH = '/t.T/Watch';
const TALK = '/t.T/Talk';

describe('StreamingCall', () => {
  const connection = newFakeConnection();
  let context: GrpcServerState;
  let router: CallRouter;

  beforeEach(() => {
    const timers = new FakeTimerSource();
    const options = {
      maxReceiveMessageBytes: 4 * 1024 * 1024,
      keptMessageBytes: 65_537,
      monotonicMicros: () => timers.nowMs() * 1000,
      onError: () => {},
    } as Partial<GrpcServerOptions> as GrpcServerOptions;
    context = new GrpcServerState(options, timers);
    router = new CallRouter(context);
    const methods: GenericMethod[] = [
      { path: WATCH, requestStream: false, responseStream: true, begin: () => ({ onMessage: () => {} }) },
      {
        path: TALK,
        requestStream: true,
        responseStream: true,
        begin: (call) => ({ onMessage: (message) => void call.send(message) }),
      },
    ];
    for (const method of methods) {
      router.add(method.path, (head) => new BoundStreamingMethod(method, head, context));
    }
  });

  function open(path: string): FakeServerStream {
    const stream = new FakeServerStream(grpcRequestHead(path), connection);
    router.onRequest(stream, false);
    return stream;
  }

  async function send(stream: FakeServerStream, bytes: number, endStream: boolean): Promise<void> {
    const message = prefixed(Buffer.alloc(bytes));
    router.onData(stream, message, 0, message.length, endStream);
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  }

  test('counts the message of an open call until the call ends', async () => {
    const [first, second] = [open(WATCH), open(WATCH)] as const;
    await send(first, 60_000, true);
    await send(second, 40_000, true);
    expect(context.budgetOf(first).bytes).toBe(100_000);
    router.onReset(first);
    expect(context.budgetOf(first).bytes).toBe(40_000);
    router.onReset(second);
    expect(context.budgetOf(first).bytes).toBe(0);
  });

  test('counts the last message of a stream, whether or not its answers are read', async () => {
    const deaf = open(TALK);
    await send(deaf, 50_000, false);
    deaf.queuedBytes = 1;
    await send(deaf, 60_000, false);
    expect(deaf.data).toHaveLength(1);
    expect(context.budgetOf(deaf).bytes).toBeGreaterThanOrEqual(50_000);
    router.onReset(deaf);
    expect(context.budgetOf(deaf).bytes).toBe(0);
  });

  test('refuses a message of more than 64 KiB', async () => {
    const talk = open(TALK);
    await send(talk, 65_537, false);
    expect(talk.grpcStatus).toBe(String(STATUS.RESOURCE_EXHAUSTED));
  });

  test.each([65_536, 65_537, 1_000_000])('bounds a compressed message of %s bytes', async (bytes) => {
    const talk = new FakeServerStream(grpcRequestHead(TALK, 'grpc-encoding', 'gzip'), connection);
    router.onRequest(talk, false);
    const message = prefixed(gzipSync(Buffer.alloc(bytes)));
    message[0] = 1;
    router.onData(talk, message, 0, message.length, false);
    await waitFor('an answer, or the end', () => talk.data.length > 0 || talk.grpcStatus !== undefined);
    expect(talk.grpcStatus).toBe(bytes > 65_536 ? String(STATUS.RESOURCE_EXHAUSTED) : undefined);
    router.onReset(talk);
  });
});
