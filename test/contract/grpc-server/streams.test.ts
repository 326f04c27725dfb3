/* Tests auxiliary methods: errors of handlers, back-pressure and ends. connectconformance covers all else. */
import { once } from 'node:events';
import type { ClientReadableStream } from '@grpc/grpc-js';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { type GenericCall, type GenericHandler, unaryMethod } from '../../../src/grpc/generic-method.js';
import type { GrpcServer } from '../../../src/grpc/grpc-server.js';
import { type Outcome, StreamClient } from '../../support/grpc/stream-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { Fixture } from './fixture.js';

const KINDS = {
  Unary: { requestStream: false, responseStream: false },
  ServerStream: { requestStream: false, responseStream: true },
  Bidi: { requestStream: true, responseStream: true },
};
type Kind = keyof typeof KINDS;
type Begin = (call: GenericCall) => GenericHandler;

/** Returns a handler that calls `answer` with each message. */
const onMessage =
  (answer: (call: GenericCall, message: Buffer) => void): Begin =>
  (call) => ({ onMessage: (message) => answer(call, message) });
/** Echoes its only message, and ends the call. */
const same = onMessage((call, message) => {
  call.send(message);
  call.end();
});
/** Echoes each message, and ends when the caller does. */
const echo: Begin = (call) => ({
  onMessage: (message) => void call.send(message),
  onRequestEnd: () => call.end(),
});

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture();
});

async function serving(
  methods: Partial<Record<Kind, Begin>>,
): Promise<{ client: StreamClient; server: GrpcServer }> {
  const server = fixture.server();
  for (const [name, begin] of Object.entries(methods)) {
    server.addGenericMethod({ path: `/test.Kinds/${name}`, ...KINDS[name as Kind], begin });
  }
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  return { client: new StreamClient(`127.0.0.1:${port}`), server };
}

/** Makes one call of each kind. */
async function endsOfAll(client: StreamClient): Promise<Outcome[]> {
  return [
    await client.unary('/test.Kinds/Unary', Buffer.of(1)),
    await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1)),
    await client.bidi('/test.Kinds/Bidi').outcome,
  ];
}

/** A long call: records the call and the events of its handler. */
function watched(calls: GenericCall[], events: string[]): Begin {
  return (call) => {
    calls.push(call);
    return { onMessage: () => events.push('message'), onClosed: () => events.push('over') };
  };
}

describe('errors', () => {
  test('that are thrown stay inside', async () => {
    const error = new Error('secret');
    const fail = (): never => {
      throw error;
    };
    const { client } = await serving({
      Unary: fail,
      ServerStream: onMessage(fail),
      Bidi: fail,
    });
    for (const outcome of await endsOfAll(client)) {
      expect(outcome).toMatchObject({ code: 13, details: 'internal error' });
    }
    expect(fixture.errors).toEqual([error, error, error]);
  });

  test('that are thrown once the call is over stay inside, too', async () => {
    const error = new Error('secret');
    const { client } = await serving({
      Unary: (call) => ({
        ...same(call),
        onClosed: () => {
          throw error;
        },
      }),
    });
    expect((await client.unary('/test.Kinds/Unary', Buffer.of(1))).code).toBe(0);
    expect(await waitFor('the error', () => fixture.errors[0])).toBe(error);
  });

  test('answer a message that cannot be decoded', async () => {
    const fail = (): never => {
      throw new Error('secret');
    };
    const { client } = await serving({ Unary: unaryMethod('', fail, () => Buffer.alloc(0)).begin });
    const end = await client.unary('/test.Kinds/Unary', Buffer.of(1));
    expect(end).toMatchObject({ code: 13, details: 'Error deserializing request' });
  });
});

describe('a stream of answers', () => {
  test('comes whole and in order when its handler heeds back-pressure', async () => {
    const { client } = await serving({
      ServerStream: (call) => {
        let sent = 0;
        const goOn = (): void => {
          while (sent < 200) if (!call.send(Buffer.alloc(10_000, sent++))) return;
          call.end();
        };
        return { onMessage: goOn, onDrained: goOn };
      },
    });
    const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1));
    expect(end.code).toBe(0);
    expect(end.messages.map((message) => message[9999])).toEqual(
      Array.from({ length: 200 }, (_unused, index) => index),
    );
  });

  test('tells its handler that the caller does not read, and ends if that goes on all the same', async () => {
    const sent: boolean[] = [];
    const { client } = await serving({
      ServerStream: onMessage((call) => {
        for (let message = 0; message < 1000; message++) sent.push(call.send(Buffer.alloc(10_000)));
      }),
    });
    const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1));
    expect(end).toMatchObject({ code: 8, details: 'the caller does not read the responses' });
    expect(sent[0]).toBe(true);
    expect(sent.at(-1)).toBe(false);
    expect(end.messages.length).toBeLessThan(900);
  });

  test.each<[string, (stream: ClientReadableStream<Buffer>, call: GenericCall) => void]>([
    ['was cancelled', (stream) => stream.cancel()],
    ['has read all', (_stream, call) => call.end()],
  ])('is told once that its caller %s', async (_name, leave) => {
    const events: string[] = [];
    const calls: GenericCall[] = [];
    const { client } = await serving({
      ServerStream: (call) => {
        call.send(Buffer.of(1));
        return watched(calls, events)(call);
      },
    });
    const stream = client.startServerStream('/test.Kinds/ServerStream', Buffer.of(1));
    await once(stream, 'data');
    leave(stream, calls[0] as GenericCall);
    await waitFor('the end', () => events[1]);
    expect(events).toEqual(['message', 'over']);
  });

  test('ends at its deadline', async () => {
    const events: string[] = [];
    const { client } = await serving({ ServerStream: watched([], events) });
    // A call that its caller gives up before it arrives has no handler.
    for (let ms = 60; events.length === 0; ms *= 2) {
      const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1), ms);
      expect(end.code).toBe(4);
    }
    await waitFor('the end', () => events.includes('over') || undefined);
  });
});

describe('a stream in both directions', () => {
  test('takes a thousand messages at once', async () => {
    const { client } = await serving({ Bidi: echo });
    const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
    for (let i = 0; i < 1000; i++) stream.write(Buffer.alloc(1000, i));
    stream.end();
    const { code, messages } = await outcome;
    expect(code).toBe(0);
    expect(messages.map((message) => message[0])).toEqual(
      Array.from({ length: 1000 }, (_unused, index) => index & 0xff),
    );
  });

  test('is told that its caller has gone', async () => {
    const events: string[] = [];
    const { client } = await serving({ Bidi: watched([], events) });
    const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
    stream.write(Buffer.of(1));
    await waitFor('the message', () => events[0]);
    stream.cancel();
    expect((await outcome).code).toBe(1);
    await waitFor('the end', () => events[1]);
    expect(events).toEqual(['message', 'over']);
  });

  test('ends when the server drains, and others are refused', async () => {
    const events: string[] = [];
    const { client, server } = await serving({ Bidi: watched([], events) });
    const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
    stream.write(Buffer.of(1));
    await waitFor('the message', () => events[0]);
    const drained = server.drain(600_000);
    expect(await outcome).toMatchObject({ code: 14, details: 'the server is shutting down' });
    expect((await client.bidi('/test.Kinds/Bidi').outcome).code).toBe(14);
    client.close();
    await drained;
  });
});
