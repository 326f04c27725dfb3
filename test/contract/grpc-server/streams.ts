import { once } from 'node:events';
import {
  type ClientReadableStream,
  Metadata,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { GrpcServer } from '../../../src/grpc/grpc-server.js';
import { type Outcome, StreamClient } from '../../support/grpc/stream-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { Fixture } from './fixture.js';

const same = (bytes: Buffer): Buffer => {
  if (bytes.equals(Buffer.from('undecodable'))) throw new Error('cannot be read');
  return bytes;
};
const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/test.Kinds/${name}`,
  requestStream,
  responseStream,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
});
const KINDS = {
  Unary: method('Unary', false, false),
  ServerStream: method('ServerStream', false, true),
  ClientStream: method('ClientStream', true, false),
  Bidi: method('Bidi', true, true),
} as unknown as ServiceDefinition;

type Unary = (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => void;
type ServerStream = (call: ServerWritableStream<Buffer, Buffer>) => void;
type ClientStream = (call: ServerReadableStream<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => void;
type Bidi = (call: ServerDuplexStream<Buffer, Buffer>) => void;
interface Handlers {
  Unary?: Unary;
  ServerStream?: ServerStream;
  ClientStream?: ClientStream;
  Bidi?: Bidi;
}

const text = (messages: readonly Buffer[]): string[] => messages.map(String);

/** Services in the shape of @grpc/grpc-js: the four kinds of call, with metadata, errors, back-pressure and ends. */
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
    handlers: Handlers,
  ): Promise<{ client: StreamClient; server: GrpcServer; port: number }> {
    const server = fixture.server();
    server.addService(KINDS, { ...handlers });
    const port = await server.listen({ host: '127.0.0.1', port: 0 });
    const client = new StreamClient(`127.0.0.1:${port}`);
    clients.push(client);
    return { client, server, port };
  }

  /** A handler that has been called. */
  const called = <T>(calls: readonly T[]): Promise<T> => waitFor('the handler', () => calls[0]);

  describe('metadata', () => {
    const metadata = (): Metadata => {
      const sent = new Metadata();
      sent.add('x-word', 'one');
      sent.add('x-word', 'two');
      sent.add('x-data-bin', Buffer.of(0, 1, 255));
      sent.add('x-data-bin', Buffer.of(7));
      return sent;
    };
    const expectMetadata = (got: Metadata | undefined): void => {
      expect(got?.get('x-word').join(', ')).toBe('one, two');
      expect(got?.get('x-data-bin')).toEqual([Buffer.of(0, 1, 255), Buffer.of(7)]);
    };

    test("of a request reaches the handler, without the fields that are the protocol's", async () => {
      const seen: Metadata[] = [];
      const { client } = await serving({
        Unary: (call, reply) => {
          seen.push(call.metadata);
          reply(null, call.request);
        },
      });
      await client.unary('/test.Kinds/Unary', Buffer.of(1), metadata(), 20_000);
      expectMetadata(seen[0]);
      expect(seen[0]?.get('user-agent')).toHaveLength(1);
      for (const name of ['te', 'content-type', 'grpc-timeout', 'grpc-accept-encoding']) {
        expect(seen[0]?.get(name)).toEqual([]);
      }
    });

    test('of an answer comes before and after the message', async () => {
      const { client } = await serving({
        Unary: (call, reply) => {
          call.sendMetadata(metadata());
          reply(null, call.request, metadata());
        },
      });
      const { code, initial, trailing } = await client.unary('/test.Kinds/Unary', Buffer.of(1));
      expect(code).toBe(0);
      expectMetadata(initial);
      expectMetadata(trailing);
    });

    test('of an error comes with it, as of a stream', async () => {
      const { client } = await serving({
        Unary: (_call, reply) => reply({ code: 9, details: 'not now', metadata: metadata() }),
        ServerStream: (call) => call.end(metadata()),
      });
      const failed = await client.unary('/test.Kinds/Unary', Buffer.of(1));
      expect(failed).toMatchObject({ code: 9, details: 'not now', messages: [] });
      expectMetadata(failed.trailing);
      const ended = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1));
      expect(ended).toMatchObject({ code: 0, messages: [] });
      expectMetadata(ended.trailing);
    });
  });

  describe('what a call object knows', () => {
    test('path, peer, deadline and request', async () => {
      const calls: ServerUnaryCall<Buffer, Buffer>[] = [];
      const peers: string[] = [];
      const { client } = await serving({
        Unary: (call, reply) => {
          calls.push(call);
          peers.push(call.getPeer());
          reply(null, Buffer.alloc(0));
        },
      });
      await client.unary('/test.Kinds/Unary', Buffer.from('asked'), undefined, 30_000);
      const call = await called(calls);
      expect(call.getPath()).toBe('/test.Kinds/Unary');
      expect(peers[0]).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(Math.abs(Number(call.getDeadline()) - Date.now() - 30_000)).toBeLessThan(15_000);
      expect(call.request).toEqual(Buffer.from('asked'));
      await client.unary('/test.Kinds/Unary', Buffer.alloc(0));
      expect(calls[1]?.getDeadline()).toBe(Number.POSITIVE_INFINITY);
    });
  });

  describe('errors', () => {
    test.each<[string, object, object]>([
      ['a status', { code: 5, details: 'not here' }, { code: 5, details: 'not here' }],
      ['an Error', new Error('no code'), { code: 2, details: 'no code' }],
      ['odd characters', { code: 3, details: 'ä%\n' }, { code: 3, details: 'ä%\n' }],
    ])('are sent from every kind: %s', async (_name, error, status) => {
      const { client } = await serving({
        Unary: (_call, reply) => reply(error),
        ServerStream: (call) => call.emit('error', error),
        ClientStream: (_call, reply) => reply(error),
        Bidi: (call) => call.emit('error', error),
      });
      const ends = [
        await client.unary('/test.Kinds/Unary', Buffer.of(1)),
        await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1)),
        await client.clientStream('/test.Kinds/ClientStream', [Buffer.of(1)]),
        await client.bidi('/test.Kinds/Bidi').outcome,
      ];
      for (const end of ends) expect(end).toMatchObject(status);
    });

    test('that are thrown stay inside', async () => {
      const error = new Error('secret');
      const fail = (): never => {
        throw error;
      };
      const { client } = await serving({ Unary: fail, ServerStream: fail, ClientStream: fail, Bidi: fail });
      const ends: Outcome[] = [
        await client.unary('/test.Kinds/Unary', Buffer.of(1)),
        await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1)),
        await client.clientStream('/test.Kinds/ClientStream', [Buffer.of(1)]),
        await client.bidi('/test.Kinds/Bidi').outcome,
      ];
      for (const end of ends) expect(end).toMatchObject({ code: 13, details: 'internal error' });
      expect(fixture.errors).toEqual([error, error, error, error]);
    });

    test('come after the messages that were written before', async () => {
      const { client } = await serving({
        ServerStream: (call) => {
          call.write(Buffer.from('one'));
          call.write(Buffer.from('two'));
          call.emit('error', { code: 10, details: 'enough' });
        },
      });
      const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1));
      expect(end).toMatchObject({ code: 10, details: 'enough' });
      expect(text(end.messages)).toEqual(['one', 'two']);
    });

    test('answer a message that cannot be decoded, and a method without a handler', async () => {
      const { client } = await serving({ Unary: (call, reply) => reply(null, call.request) });
      expect((await client.unary('/test.Kinds/Unary', Buffer.from('undecodable'))).code).toBe(13);
      expect((await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1))).code).toBe(12);
      expect((await client.bidi('/test.Kinds/Bidi').outcome).code).toBe(12);
    });
  });

  describe('a stream of answers', () => {
    test('comes whole and in order when its handler heeds back-pressure', async () => {
      const { client } = await serving({
        ServerStream: async (call) => {
          for (let i = 0; i < 200; i++) {
            if (!call.write(Buffer.alloc(10_000, i))) await once(call, 'drain');
          }
          call.end();
        },
      });
      const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1));
      expect(end.code).toBe(0);
      expect(end.messages.map((message) => message[9999])).toEqual(
        Array.from({ length: 200 }, (_unused, index) => index),
      );
    });

    test('waits for a caller that does not read', async () => {
      const calls: ServerWritableStream<Buffer, Buffer>[] = [];
      let written = 0;
      const { client } = await serving({
        ServerStream: async (call) => {
          calls.push(call);
          for (; written < 1000 && !call.cancelled; written++) {
            if (!call.write(Buffer.alloc(10_000))) await once(call, 'drain');
          }
        },
      });
      const stream = client.startServerStream('/test.Kinds/ServerStream', Buffer.of(1));
      stream.pause();
      await waitFor('back-pressure', () => (calls[0]?.writableNeedDrain === true ? true : undefined));
      expect(written).toBeLessThan(900);
      stream.cancel();
      await waitFor('the end', () => calls[0]?.cancelled || undefined);
    });

    test.each<[string, (stream: ClientReadableStream<Buffer>) => void]>([
      ['was cancelled', (stream) => stream.cancel()],
      ['has read all', () => {}],
    ])('is told that its caller %s', async (name, leave) => {
      const events: string[] = [];
      const calls: ServerWritableStream<Buffer, Buffer>[] = [];
      const { client } = await serving({
        ServerStream: (call) => {
          calls.push(call);
          call.on('cancelled', () => events.push('cancelled'));
          call.write(Buffer.of(1));
          if (name === 'has read all') call.end();
        },
      });
      const stream = client.startServerStream('/test.Kinds/ServerStream', Buffer.of(1));
      await once(stream, 'data');
      leave(stream);
      await waitFor('the event', () => events[0]);
      expect(calls[0]?.cancelled).toBe(true);
      expect(events).toEqual(['cancelled']);
    });

    test('ends at its deadline', async () => {
      const calls: ServerWritableStream<Buffer, Buffer>[] = [];
      const { client } = await serving({ ServerStream: (call) => void calls.push(call) });
      const end = await client.serverStream('/test.Kinds/ServerStream', Buffer.of(1), undefined, 60);
      expect(end.code).toBe(4);
      await waitFor('the end', () => calls[0]?.cancelled || undefined);
    });
  });

  describe('a stream of requests', () => {
    test('reaches its handler whole and in order', async () => {
      const { client } = await serving({
        ClientStream: (call, reply) => {
          const got: string[] = [];
          call.on('data', (message: Buffer) => got.push(String(message)));
          call.on('end', () => reply(null, Buffer.from(got.join())));
        },
      });
      const words = Array.from({ length: 500 }, (_unused, index) => `word ${index}`);
      const end = await client.clientStream(
        '/test.Kinds/ClientStream',
        words.map((word) => Buffer.from(word)),
      );
      expect(end.code).toBe(0);
      expect(text(end.messages)).toEqual([words.join()]);
      expect(text((await client.clientStream('/test.Kinds/ClientStream', [])).messages)).toEqual(['']);
    });

    test('may be read slowly, and with large messages', async () => {
      const { client } = await serving({
        ClientStream: async (call, reply) => {
          let bytes = 0;
          for await (const message of call) {
            bytes += (message as Buffer).length;
            await new Promise((resolve) => setImmediate(resolve));
          }
          reply(null, Buffer.from(String(bytes)));
        },
      });
      const messages = Array.from({ length: 20 }, () => Buffer.alloc(200_000));
      const end = await client.clientStream('/test.Kinds/ClientStream', messages);
      expect(text(end.messages)).toEqual(['4000000']);
    });

    test('may be answered before its end', async () => {
      const { client } = await serving({
        ClientStream: (call, reply) => void call.once('data', (message: Buffer) => reply(null, message)),
      });
      const end = await client.clientStream('/test.Kinds/ClientStream', [Buffer.from('first')], {
        open: true,
      });
      expect(end).toMatchObject({ code: 0, messages: [Buffer.from('first')] });
    });
  });

  describe('a stream in both directions', () => {
    const echo: Bidi = (call) => {
      call.on('data', (message) => call.write(message));
      call.on('end', () => call.end());
    };

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
      const { client } = await serving({ Bidi: (call) => void call.once('data', () => call.end()) });
      const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
      stream.write(Buffer.of(1));
      expect((await outcome).code).toBe(0);
    });

    test('is told that its caller has gone', async () => {
      const calls: ServerDuplexStream<Buffer, Buffer>[] = [];
      const events: string[] = [];
      const { client } = await serving({
        Bidi: (call) => {
          calls.push(call);
          call.on('cancelled', () => events.push('cancelled'));
        },
      });
      const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
      stream.write(Buffer.of(1));
      await called(calls);
      stream.cancel();
      expect((await outcome).code).toBe(1);
      await waitFor('the event', () => events[0]);
      expect(calls[0]?.destroyed).toBe(true);
    });

    test('ends when the server drains, and others are refused', async () => {
      const calls: ServerDuplexStream<Buffer, Buffer>[] = [];
      const { client, server } = await serving({ Bidi: (call) => void calls.push(call) });
      const { stream, outcome } = client.bidi('/test.Kinds/Bidi');
      stream.write(Buffer.of(1));
      await called(calls);
      const drained = server.drain(600_000);
      expect(await outcome).toMatchObject({ code: 14, details: 'the server is shutting down' });
      expect((await client.bidi('/test.Kinds/Bidi').outcome).code).toBe(14);
      client.close();
      await drained;
    });
  });
}
