import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { describe, expect, jest, test } from '@jest/globals';
import type { H2ServerOptions } from '../../src/h2/serving/served-connection.js';
import { TEST_LIMITS } from '../support/h2/h2-limits.js';
import {
  END_STREAM,
  headers,
  PREFACE,
  request,
  settings,
  TYPE,
  windowUpdate,
} from '../support/h2/h2-peer.js';
import { Received, TestServer } from '../support/h2/h2-server.js';
import { post } from '../support/h2/http2-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';

let server: TestServer;

const start = async (options: Partial<H2ServerOptions> = {}): Promise<TestServer> => {
  server = new TestServer(options);
  return server.listen();
};

const REQUEST_HEAD = [':method: POST', ':scheme: http', ':authority: weir'];
const holdRequest = (id: number): Buffer => headers(id, END_STREAM, ...REQUEST_HEAD, ':path: /hold');

const OPEN_IDS = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
const answersIn = (received: Received): number =>
  received.frames.filter(({ type }) => type === TYPE.HEADERS).length;

describe('H2Server', () => {
  test('sends the answers of one turn in one write per connection', async () => {
    await start();
    const received = [1, 2].map(() => {
      const socket = server.socket();
      socket.write(Buffer.concat([PREFACE, settings(), ...OPEN_IDS.map(holdRequest)]));
      return new Received(socket);
    });
    await waitFor('all requests', () => server.handler.held.length === 2 * OPEN_IDS.length);
    const write = jest.spyOn(Socket.prototype, 'write');
    try {
      for (const stream of server.handler.held) stream.sendHeaders([], true);
      for (const each of received) {
        await waitFor('all answers', () => answersIn(each) === OPEN_IDS.length);
      }
      expect(write).toHaveBeenCalledTimes(2);
    } finally {
      write.mockRestore();
    }
  });

  test('sends what was written to a client that closes its side, and ends its streams', async () => {
    await start();
    const socket = server.socket();
    const received = new Received(socket);
    socket.end(Buffer.concat([PREFACE, settings(), request(1, END_STREAM), holdRequest(3)]));
    expect((await received.closed).includes('ok')).toBe(true);
    expect(server.handler.resets).toBe(1);
    expect(server.complaints).toEqual([]);
  });

  test('sends everything to a client that stops reading for a while', async () => {
    await start({ limits: { ...TEST_LIMITS, maxOutputBytes: 100_000_000 } });
    const socket = server.socket();
    const received = new Received(socket);
    socket.pause();
    const windows = [settings([4, 0x7fff_ffff]), windowUpdate(0, 0x7fff_0000)];
    const calls = OPEN_IDS.map((id) => headers(id, END_STREAM, ...REQUEST_HEAD, ':path: /large'));
    socket.write(Buffer.concat([PREFACE, ...windows, ...calls]));
    // More than the buffers of the operating system hold, so that this call is read only after a pause.
    const other = await server.session();
    expect((await post(other, '/', Buffer.alloc(0))).body.toString()).toBe('ok');
    socket.write(headers(1001, END_STREAM, ...REQUEST_HEAD, ':path: /hold'));
    socket.resume();
    await waitFor('the call after the pause', () => server.handler.held.length === 1);
    await waitFor('all of it', () => received.length > OPEN_IDS.length * 65_536);
    expect(answersIn(received)).toBe(2 * OPEN_IDS.length);
    expect(server.complaints).toEqual([]);
  });

  test('a handler that throws ends its connection, and no other', async () => {
    await start();
    const [other, unlucky] = await Promise.all([server.session(), server.session()]);
    const held = post(unlucky, '/hold', Buffer.alloc(0));
    await waitFor('the call', () => server.handler.held.length === 1);
    expect((await post(unlucky, '/throw', Buffer.alloc(0))).httpStatus).toBeUndefined();
    expect((await held).httpStatus).toBeUndefined();
    await waitFor('the end of its streams', () => server.handler.resets === 2);
    expect(server.errors).toEqual([new Error('a mistake in the handler')]);
    expect((await post(other, '/', Buffer.alloc(0))).body.toString()).toBe('ok');
  });

  test('reports the path as the address on a Unix domain socket', async () => {
    const folder = new TempDir();
    server = new TestServer();
    const path = folder.join('h2.sock');
    await server.server.listen({ path });
    const socket = connect({ path });
    socket.end('GET / HTTP/1.1\r\n\r\n');
    await server.untilComplaint(new RegExp(`^the connection from ${path} does not speak HTTP/2`));
    socket.destroy();
  });
});

describe('closing', () => {
  test('resolves empty() for all waiters, and immediately if nothing is open', async () => {
    await start();
    await server.server.empty();
    const session = await server.session();
    const waits = [server.server.empty(), server.server.empty()];
    session.destroy();
    await Promise.all(waits);
  });
});

describe('age', () => {
  test('varies the age of each connection by ten per cent', async () => {
    let nowMs = 0;
    let random = 0;
    await start({ maxConnectionAgeMs: 1000, nowMs: () => nowMs, random: () => random });
    const newSession = await server.session();
    random = 0.5;
    const middle = await server.session();
    random = 0.999;
    const old = await server.session();
    nowMs = 901;
    await once(newSession, 'goaway');
    nowMs = 1001;
    // One pass checks all connections.
    await once(middle, 'goaway');
    expect(old.destroyed).toBe(false);
    expect((await post(old, '/', Buffer.alloc(0))).body.toString()).toBe('ok');
    nowMs = 1100;
    await once(old, 'goaway');
  });
});
