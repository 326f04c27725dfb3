/* Tests drain and close, with everything that could delay them. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { protoFiles } from '../../../src/codec/proto-files.js';
import { Health } from '../../../src/grpc/health.js';
import { addReflection } from '../../../src/grpc/reflection.js';
import { TYPE } from '../../support/h2/h2-frames.js';
import { openSession, openStream, post, prefixed, streamEnd } from '../../support/h2/http2-client.js';
import { callFrame, emptyMessageFrame } from '../../support/h2/raw-http2.js';
import { waitFor } from '../../support/process/wait-for.js';
import { ECHO, Fixture, HOLD } from './fixture.js';

const WATCH = '/grpc.health.v1.Health/Watch';
const REFLECT = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
/** A grace period longer than the test timeout, so that a drain that waits for it fails the test. */
const LONG = 600_000;
/** ServerReflectionRequest{list_services: "*"}. */
const LIST_SERVICES = prefixed(Buffer.from('3a012a', 'hex'));

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture();
});

const withColdServices = async (): Promise<{
  server: ReturnType<Fixture['server']>;
  port: number;
  health: Health;
}> => {
  const server = fixture.server();
  const health = new Health(['ratelimit']);
  health.addTo(server);
  addReflection(server, protoFiles());
  return { server, health, port: await server.listen({ host: '127.0.0.1', port: 0 }) };
};

describe('drain', () => {
  test('ends at once without connections, also before listening, and twice', async () => {
    const { server, port } = await fixture.listening();
    await Promise.all([server.drain(LONG), server.drain(LONG)]);
    expect((await fixture.client(port).unary(ECHO, Buffer.alloc(0))).code).toBe(14);
    await fixture.server().drain(LONG);
  });

  test('closes idle connections at once, with GOAWAY', async () => {
    const { server, port } = await fixture.listening();
    const session = await openSession(port);
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    const goaway = once(session, 'goaway');
    await server.drain(LONG);
    expect((await goaway)[0]).toBe(0);
  });

  test('closes connections that never said a word, or only half a greeting', async () => {
    const { server, port } = await fixture.listening();
    const closed: Promise<unknown>[] = [];
    for (const text of ['', 'PRI * HTTP/2.0\r\n']) {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      if (text !== '') socket.write(text);
      closed.push(once(socket.resume(), 'close'));
    }
    // Accepted after the other connections.
    const session = await openSession(port);
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    await server.drain(LONG);
    await Promise.all(closed);
  });

  test('lets a running call finish, refuses new connections, then ends', async () => {
    const { server, port } = await fixture.listening();
    const client = fixture.client(port);
    const running = client.unary(HOLD, Buffer.alloc(0));
    const { answer } = await fixture.untilHeld();
    let ended = false;
    const drained = server.drain(LONG).then(() => {
      ended = true;
    });
    expect((await fixture.client(port).unary(ECHO, Buffer.alloc(0))).code).toBe(14);
    expect(ended).toBe(false);
    answer(Buffer.from('finished'));
    expect(await running).toEqual({ code: 0, message: Buffer.from('finished') });
    await drained;
  });

  test('names the last stream it serves, and never runs a later one', async () => {
    const { server, port } = await fixture.listening();
    const { raw, call } = await fixture.rawHeldCall(port);
    const drained = server.drain(LONG);
    // A GOAWAY without a stream may be sent first, with a PING that detects whether it was read (RFC 9113 section
    // 6.8).
    await waitFor('a GOAWAY that names stream 1', () => {
      raw.acknowledgePings();
      return raw.frames.find(({ type, payload }) => type === TYPE.GOAWAY && payload.readUInt32BE(0) === 1);
    });
    raw.send(callFrame(3, HOLD));
    raw.send(emptyMessageFrame(3));
    call.answer(Buffer.alloc(0));
    await drained;
    expect(fixture.held).toHaveLength(1);
  });

  test('cuts what still runs after the grace time', async () => {
    const { server, port } = await fixture.listening();
    const running = fixture.client(port).unary(HOLD, Buffer.alloc(0));
    const { info } = await fixture.untilHeld();
    await server.drain(50);
    expect((await running).code).toBe(14);
    expect(info.cancelled()).toBe(true);
  });

  test('ends an open Watch and forgets its watcher', async () => {
    const { server, port, health } = await withColdServices();
    const stream = openStream(await openSession(port), WATCH);
    const end = streamEnd(stream);
    stream.end(prefixed(Buffer.alloc(0)));
    await waitFor('the watcher', () => health.watchers || undefined);
    await server.drain(LONG);
    expect((await end).grpcStatus).toBe('14');
    expect(health.watchers).toBe(0);
  });

  test('ends an open reflection stream', async () => {
    const { server, port } = await withColdServices();
    const stream = openStream(await openSession(port), REFLECT);
    const end = streamEnd(stream);
    stream.write(LIST_SERVICES);
    await once(stream, 'data');
    await server.drain(LONG);
    expect((await end).grpcStatus).toBe('14');
  });

  test('is not held up by a client that does not read its answer', async () => {
    const { server, port } = await fixture.listening();
    const session = await openSession(port, { settings: { initialWindowSize: 0 } });
    void post(session, HOLD, prefixed(Buffer.alloc(0)));
    const { answer } = await fixture.untilHeld();
    answer(Buffer.alloc(1000));
    await server.drain(LONG);
  });

  test('is not held up by a client that does not finish its message', async () => {
    const { server, port } = await fixture.listening();
    const session = await openSession(port);
    openStream(session, HOLD).write(Buffer.of(0, 0, 0, 0, 100, 1));
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    await server.drain(LONG);
  });

  test('is not held up by a client that floods reflection and reads nothing', async () => {
    const { server, port } = await withColdServices();
    const session = await openSession(port, { settings: { initialWindowSize: 0 } });
    const stream = openStream(session, REFLECT);
    stream.pause();
    stream.write(Buffer.concat(Array.from({ length: 50_000 }, () => LIST_SERVICES)));
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    await server.drain(LONG);
  });
});

describe('close', () => {
  test('cuts running calls and frees the port', async () => {
    const { server, port } = await fixture.listening();
    const running = fixture.client(port).unary(HOLD, Buffer.alloc(0));
    await fixture.untilHeld();
    await server.close();
    expect((await running).code).toBe(14);
    expect(await fixture.server().listen({ host: '127.0.0.1', port })).toBe(port);
  });

  test('ends a drain that is under way', async () => {
    const { server, port } = await fixture.listening();
    void fixture.client(port).unary(HOLD, Buffer.alloc(0));
    await fixture.untilHeld();
    const drained = server.drain(LONG);
    await server.close();
    await drained;
  });

  test('may be called before listening and twice', async () => {
    const server = fixture.server();
    await server.close();
    await server.close();
  });
});
