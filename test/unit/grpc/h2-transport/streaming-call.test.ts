import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AuxiliaryMethod } from '../../../../src/grpc/auxiliary-method.js';
import { type GrpcServerOptions, STATUS } from '../../../../src/grpc/grpc-server.js';
import { CallContext } from '../../../../src/grpc/h2-transport/call-context.js';
import { CallRouter } from '../../../../src/grpc/h2-transport/call-router.js';
import { StreamingTarget } from '../../../../src/grpc/h2-transport/streaming-call.js';
import { FakeTimerSource } from '../../../support/clock/fake-timer-source.js';
import {
  FakeServerStream,
  grpcRequestHead,
  newFakeConnection,
} from '../../../support/grpc/fake-server-stream.js';
import { prefixed } from '../../../support/h2/http2-client.js';

const MIB = 1024 * 1024;
const WATCH = '/t.T/Watch';
const TALK = '/t.T/Talk';

/** Handlers of long calls may hold 8 MiB of requests on a connection. */
describe('StreamingCall', () => {
  const connection = newFakeConnection();
  let router: CallRouter;

  beforeEach(() => {
    const timers = new FakeTimerSource();
    const options = {
      maxReceiveMessageBytes: 4 * MIB,
      monotonicMicros: () => timers.nowMs() * 1000,
      onError: () => {},
    } as Partial<GrpcServerOptions> as GrpcServerOptions;
    const context = new CallContext(options, timers);
    router = new CallRouter(context);
    const methods: AuxiliaryMethod[] = [
      { path: WATCH, requestStream: false, responseStream: true, begin: () => ({ onMessage: () => {} }) },
      {
        path: TALK,
        requestStream: true,
        responseStream: true,
        begin: (call) => ({ onMessage: (message) => void call.send(message) }),
      },
    ];
    for (const method of methods) {
      router.add(method.path, (head) => new StreamingTarget(method, head, context));
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
    const [first, second, third, fourth] = [open(WATCH), open(WATCH), open(WATCH), open(WATCH)] as const;
    await send(first, 4 * MIB, true);
    await send(second, 3 * MIB, true);
    await send(third, 2 * MIB, true);
    expect([first.ended, second.ended]).toEqual([false, false]);
    expect(third.grpcStatus).toBe(String(STATUS.RESOURCE_EXHAUSTED));
    router.onReset(first);
    await send(fourth, 4 * MIB, true);
    expect(fourth.ended).toBe(false);
    for (const stream of [second, fourth]) router.onReset(stream);
  });

  test('counts the last message of streams with unread answers', async () => {
    for (let call = 0; call < 2; call++) {
      const deaf = open(TALK);
      await send(deaf, 3 * MIB, false);
      deaf.queuedBytes = 1;
      await send(deaf, 4, false);
      expect(deaf.data).toHaveLength(1);
    }
    const other = open(TALK);
    await send(other, 3 * MIB, false);
    expect(other.grpcStatus).toBe(String(STATUS.RESOURCE_EXHAUSTED));
  });

  test('allows unlimited messages on a stream whose answers are read', async () => {
    const talk = open(TALK);
    for (let message = 0; message < 10; message++) await send(talk, 2 * MIB, false);
    expect(talk.data).toHaveLength(10);
    expect(talk.ended).toBe(false);
    router.onReset(talk);
  });
});
