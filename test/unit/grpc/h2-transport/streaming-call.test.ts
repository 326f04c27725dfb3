import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { MethodDefinition, UntypedHandleCall } from '@grpc/grpc-js';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { type GrpcServerOptions, STATUS } from '../../../../src/grpc/grpc-server.js';
import { CallContext } from '../../../../src/grpc/h2-transport/call-context.js';
import { CallRouter } from '../../../../src/grpc/h2-transport/call-router.js';
import { RareTarget } from '../../../../src/grpc/h2-transport/rare-target.js';
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

function method(path: string, requestStream: boolean): MethodDefinition<unknown, unknown> {
  const same = (bytes: unknown): Buffer => bytes as Buffer;
  return {
    path,
    requestStream,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}

/** What the handlers of calls that go on for long may hold of their requests: 8 MiB on a connection. */
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
    const add = (path: string, requestStream: boolean, handler: (call: never) => void): void => {
      const definition = method(path, requestStream);
      router.add(path, (head) => new RareTarget(definition, handler as UntypedHandleCall, head, context));
    };
    add(WATCH, false, () => {});
    add(TALK, true, (talk: Duplex) => talk.on('data', (message) => talk.write(message)));
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

  test('counts the message of a call that goes on, until it is over', async () => {
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

  test('counts the last messages of a stream of requests whose answers are not read', async () => {
    const deaf = open(TALK);
    deaf.queuedBytes = 1;
    await send(deaf, 4 * MIB, false);
    await send(deaf, 4 * MIB, false);
    const other = open(TALK);
    await send(other, MIB, false);
    expect(other.grpcStatus).toBe(String(STATUS.RESOURCE_EXHAUSTED));
    expect(deaf.data).toHaveLength(1);
    router.onReset(deaf);
  });

  test('lets a stream whose answers are read go on for ever', async () => {
    const talk = open(TALK);
    for (let message = 0; message < 10; message++) await send(talk, 2 * MIB, false);
    expect(talk.data).toHaveLength(10);
    expect(talk.ended).toBe(false);
    router.onReset(talk);
  });
});
