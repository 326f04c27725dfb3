import { once } from 'node:events';
import { type ClientReadableStream, Metadata } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type AuxiliaryCall,
  type AuxiliaryHandler,
  type Fields,
  unaryMethod,
} from '../../../src/grpc/auxiliary-method.js';
import { GrpcError, type GrpcServer, STATUS, type StatusCode } from '../../../src/grpc/grpc-server.js';
import { type Outcome, StreamClient } from '../../support/grpc/stream-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { Fixture } from './fixture.js';

const KINDS = {
  Unary: { requestStream: false, responseStream: false },
  ServerStream: { requestStream: false, responseStream: true },
  ClientStream: { requestStream: true, responseStream: false },
  Bidi: { requestStream: true, responseStream: true },
};
type Kind = keyof typeof KINDS;
type Begin = (call: AuxiliaryCall) => AuxiliaryHandler;

const text = (messages: readonly Buffer[]): string[] => messages.map(String);
const silent: AuxiliaryHandler = { onMessage: () => {} };
/** Returns a handler that calls `answer` with each message. */
const onMessage =
  (answer: (call: AuxiliaryCall, message: Buffer) => void): Begin =>
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

/** Tests auxiliary methods: the four kinds of call, with header fields, errors, back-pressure and ends. */
export function describeStreams(): void {
  let fixture: Fixture;
  let clients: StreamClient[];
  beforeEach(() => {
    fixture = new Fixture();
    clients = [];
  });
  afterEach(async () => {
    for (const client of clients) client.close();
    await fixture.cleanUp();
  });

  async function serving(
    methods: Partial<Record<Kind, Begin>>,
  ): Promise<{ client: StreamClient; server: GrpcServer }> {
    const server = fixture.server();
    for (const [name, begin] of Object.entries(methods)) {
      server.addMethod({ path: `/test.Kinds/${name}`, ...KINDS[name as Kind], begin });
    }
    const port = await server.listen({ host: '127.0.0.1', port: 0 });
    const client = new StreamClient(`127.0.0.1:${port}`);
    clients.push(client);
    return { client, server };
  }

  /** Makes one call of each kind. */
  async function endsOfAll(client: StreamClient): Promise<Outcome[]> {
    return [
      await client.unary('/test.Kinds/Unary', Buffer.of(1)),
      await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1)),
      await client.clientStream('/test.Kinds/ClientStream', [Buffer.of(1)]),
      await client.bidi('/test.Kinds/Bidi').outcome,
    ];
  }

  /** A long call: records the call and the events of its handler. */
  function watched(calls: AuxiliaryCall[], events: string[]): Begin {
    return (call) => {
      calls.push(call);
      return { onMessage: () => events.push('message'), onClosed: () => events.push('over') };
    };
  }

  describe('header fields', () => {
    const fields: Fields = ['x-word', 'one', 'x-word', 'two', 'x-data-bin', 'AAH/', 'x-data-bin', 'Bw'];
    const expectMetadata = (got: Metadata | undefined): void => {
      expect(got?.get('x-word').join(', ')).toBe('one, two');
      expect(got?.get('x-data-bin')).toEqual([Buffer.of(0, 1, 255), Buffer.of(7)]);
    };

    test('of a request reach the handler, with the time that its caller waits', async () => {
      const calls: AuxiliaryCall[] = [];
      const { client } = await serving({
        Unary: (call) => {
          calls.push(call);
          return same(call);
        },
      });
      const metadata = new Metadata();
      metadata.add('x-word', 'one');
      metadata.add('x-data-bin', Buffer.of(0, 1, 255));
      await client.unary('/test.Kinds/Unary', Buffer.of(1), metadata, 20_000);
      await client.unary('/test.Kinds/Unary', Buffer.of(1));
      const seen = calls[0]?.fields ?? [];
      expect(seen[seen.indexOf('x-word') + 1]).toBe('one');
      expect(seen[seen.indexOf('x-data-bin') + 1]).toBe('AAH/');
      expect(Math.abs((calls[0]?.timeoutMicros ?? 0) - 20_000_000)).toBeLessThan(15_000_000);
      expect(calls[1]?.timeoutMicros).toBe(Number.POSITIVE_INFINITY);
    });

    test('of an answer come before and after the message', async () => {
      const { client } = await serving({
        Unary: onMessage((call, message) => {
          call.sendHeaders(fields);
          call.send(message);
          call.end(undefined, fields);
        }),
      });
      const { code, initial, trailing } = await client.unary('/test.Kinds/Unary', Buffer.of(1));
      expect(code).toBe(0);
      expectMetadata(initial);
      expectMetadata(trailing);
    });

    test('of an error come with it, as those of a stream', async () => {
      const { client } = await serving({
        Unary: onMessage((call) => call.end(new GrpcError(9 as StatusCode, 'not now'), fields)),
        ServerStream: onMessage((call) => call.end(undefined, fields)),
      });
      const failed = await client.unary('/test.Kinds/Unary', Buffer.of(1));
      expect(failed).toMatchObject({ code: 9, details: 'not now', messages: [] });
      expectMetadata(failed.trailing);
      const ended = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1));
      expect(ended).toMatchObject({ code: 0, messages: [] });
      expectMetadata(ended.trailing);
    });
  });

  describe('errors', () => {
    test.each([
      ['usual text', 'not here'],
      ['odd characters', 'ä%\n'],
    ])('are sent from every kind: %s', async (_name, message) => {
      const error = new GrpcError(STATUS.NOT_FOUND, message);
      const end: Begin = (call) => {
        call.end(error);
        return silent;
      };
      const fail = (): never => {
        throw error;
      };
      const { client } = await serving({ Unary: fail, ServerStream: end, ClientStream: fail, Bidi: end });
      for (const outcome of await endsOfAll(client)) {
        expect(outcome).toMatchObject({ code: STATUS.NOT_FOUND, details: message });
      }
      expect(fixture.errors).toEqual([]);
    });

    test('that are thrown stay inside', async () => {
      const error = new Error('secret');
      const fail = (): never => {
        throw error;
      };
      const { client } = await serving({
        Unary: fail,
        ServerStream: onMessage(fail),
        ClientStream: () => ({ onMessage: () => {}, onRequestEnd: fail }),
        Bidi: fail,
      });
      for (const outcome of await endsOfAll(client)) {
        expect(outcome).toMatchObject({ code: 13, details: 'internal error' });
      }
      expect(fixture.errors).toEqual([error, error, error, error]);
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

    test('come after the messages that were written before, and nothing comes after them', async () => {
      const { client } = await serving({
        ServerStream: onMessage((call) => {
          call.send(Buffer.from('one'));
          call.send(Buffer.from('two'));
          call.end(new GrpcError(10 as StatusCode, 'enough'));
          expect(call.send(Buffer.from('three'))).toBe(false);
          call.end();
        }),
      });
      const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1));
      expect(end).toMatchObject({ code: 10, details: 'enough' });
      expect(text(end.messages)).toEqual(['one', 'two']);
    });

    test('answer a message that cannot be decoded', async () => {
      const fail = (): never => {
        throw new Error('secret');
      };
      const { client } = await serving({ Unary: unaryMethod('', fail, () => Buffer.alloc(0)).begin });
      const end = await client.unary('/test.Kinds/Unary', Buffer.of(1));
      expect(end).toMatchObject({ code: 13, details: 'Error deserializing request' });
    });

    test('answer a method that nobody serves', async () => {
      const { client } = await serving({});
      for (const { code } of await endsOfAll(client)) expect(code).toBe(12);
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

    test.each<[string, (stream: ClientReadableStream<Buffer>, call: AuxiliaryCall) => void]>([
      ['was cancelled', (stream) => stream.cancel()],
      ['has read all', (_stream, call) => call.end()],
    ])('is told once that its caller %s', async (_name, leave) => {
      const events: string[] = [];
      const calls: AuxiliaryCall[] = [];
      const { client } = await serving({
        ServerStream: (call) => {
          call.send(Buffer.of(1));
          return watched(calls, events)(call);
        },
      });
      const stream = client.startServerStream('/test.Kinds/ServerStream', Buffer.of(1));
      await once(stream, 'data');
      leave(stream, calls[0] as AuxiliaryCall);
      await waitFor('the end', () => events[1]);
      expect(events).toEqual(['message', 'over']);
    });

    test('ends at its deadline', async () => {
      const events: string[] = [];
      const { client } = await serving({ ServerStream: watched([], events) });
      // A call that its caller gives up before it arrives has no handler.
      for (let ms = 60; events.length === 0; ms *= 2) {
        const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1), undefined, ms);
        expect(end.code).toBe(4);
      }
      await waitFor('the end', () => events.includes('over') || undefined);
    });
  });

  describe('a stream of requests', () => {
    /** Returns a handler that collects all messages and answers with the result of `told`. */
    const collect =
      (told: (messages: readonly Buffer[]) => string): Begin =>
      (call) => {
        const got: Buffer[] = [];
        return {
          onMessage: (message) => got.push(message),
          onRequestEnd: () => {
            call.send(Buffer.from(told(got)));
            call.end();
          },
        };
      };

    test('reaches its handler whole and in order', async () => {
      const { client } = await serving({ ClientStream: collect((messages) => text(messages).join()) });
      const words = Array.from({ length: 500 }, (_unused, index) => `word ${index}`);
      const end = await client.clientStream(
        '/test.Kinds/ClientStream',
        words.map((word) => Buffer.from(word)),
      );
      expect(end.code).toBe(0);
      expect(text(end.messages)).toEqual([words.join()]);
      expect(text((await client.clientStream('/test.Kinds/ClientStream', [])).messages)).toEqual(['']);
    });

    test('may have large messages', async () => {
      const { client } = await serving({
        ClientStream: collect((messages) => String(messages.reduce((sum, { length }) => sum + length, 0))),
      });
      const messages = Array.from({ length: 100 }, () => Buffer.alloc(60_000));
      const end = await client.clientStream('/test.Kinds/ClientStream', messages);
      expect(text(end.messages)).toEqual(['6000000']);
    });

    test('may be answered before its end', async () => {
      const { client } = await serving({ ClientStream: same });
      const end = await client.clientStream('/test.Kinds/ClientStream', [Buffer.from('first')], {
        open: true,
      });
      expect(end).toMatchObject({ code: 0, messages: [Buffer.from('first')] });
    });
  });

  describe('a stream in both directions', () => {
    test('answers each message as it comes, and ends when the caller does', async () => {
      const { client } = await serving({ Bidi: echo });
      const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
      for (const word of ['one', 'two', 'three']) {
        stream.write(Buffer.from(word));
        const [message] = (await once(stream, 'data')) as [Buffer];
        expect(String(message)).toBe(word);
      }
      stream.end();
      const end = await outcome;
      expect(end.code).toBe(0);
      expect(text(end.messages)).toEqual(['one', 'two', 'three']);
    });

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

    test('may end while its caller would go on', async () => {
      const { client } = await serving({ Bidi: onMessage((call) => call.end()) });
      const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
      stream.write(Buffer.of(1));
      expect((await outcome).code).toBe(0);
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
}
