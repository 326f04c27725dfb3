import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test } from '@jest/globals';
import { ERROR_CODE } from '../../src/h2/failure.js';
import type { H2Limits } from '../../src/h2/limits.js';
import type { H2ServerOptions } from '../../src/h2/serving/served-connection.js';
import { TEST_LIMITS } from '../support/h2/h2-limits.js';
import {
  END_STREAM,
  frame,
  headers,
  PREFACE,
  ping,
  rst,
  SETTINGS_ACK,
  settings,
  TYPE,
  windowUpdate,
  words,
} from '../support/h2/h2-peer.js';
import { Received, SteadyCaller, TestServer } from '../support/h2/h2-server.js';
import { post } from '../support/h2/http2-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { CertificateAuthority } from '../support/tls/certificates.js';

/** Each attack runs next to a caller whose calls must all be answered before, during and after the attack. */
let server: TestServer;
let caller: SteadyCaller;

const limits = (change: Partial<H2Limits>): { limits: H2Limits } => ({
  limits: { ...TEST_LIMITS, ...change },
});

async function start(options: Partial<H2ServerOptions> = {}, ca?: string): Promise<void> {
  server = new TestServer(options, ca);
  await server.listen();
  caller = new SteadyCaller(await server.session());
  await caller.untilAnswered();
}

afterEach(async () => {
  await caller.untilAnswered();
  await caller.stop();
  expect(caller.failed).toBe(0);
  // The server also accepts new clients.
  const session = await server.session();
  expect((await post(session, '/', Buffer.alloc(0))).body.toString()).toBe('ok');
  expect(server.errors).toEqual([]);
});

/** Opens a connection that has sent preface and SETTINGS, followed by `bytes`. */
function connectWithPreface(
  bytes: Buffer = Buffer.alloc(0),
  ...pairs: [number, number][]
): { socket: ReturnType<TestServer['socket']>; received: Received } {
  const socket = server.socket();
  const received = new Received(socket);
  socket.write(Buffer.concat([PREFACE, settings(...pairs), SETTINGS_ACK, bytes]));
  return { socket, received };
}

const call = (id: number, path: string, flags = END_STREAM): Buffer =>
  headers(id, flags, ':method: POST', ':scheme: http', `:path: ${path}`, ':authority: weir');

const ids = (count: number, first = 1): number[] =>
  Array.from({ length: count }, (_, index) => first + 2 * index);

/** Returns the error code of the GOAWAY that ended a connection. */
async function goawayCode(received: Received): Promise<number | undefined> {
  await received.closed;
  return received.frames.find(({ type }) => type === TYPE.GOAWAY)?.payload.readUInt32BE(4);
}

describe('slow connections', () => {
  test.each([
    ['says nothing', Buffer.alloc(0)],
    ['sends half of the preface', PREFACE.subarray(0, 10)],
    ['sends no SETTINGS', PREFACE],
    ['sends half of its SETTINGS', Buffer.concat([PREFACE, settings([3, 100]).subarray(0, 12)])],
  ])('a connection that %s is closed in time', async (_what, bytes) => {
    await start({ handshakeTimeoutMs: 1000 });
    const socket = server.socket();
    const received = new Received(socket);
    socket.write(bytes);
    await received.closed;
    await server.untilComplaint(/did not start HTTP\/2 within 1000 ms/);
  });

  test('many silent connections are closed a few per turn of the event loop', async () => {
    let turn = 0;
    const cutInTurn = new Map<number, number>();
    await start({
      handshakeTimeoutMs: 2000,
      onBadConnection: () => cutInTurn.set(turn, (cutInTurn.get(turn) ?? 0) + 1),
    });
    const silent = Array.from({ length: 300 }, () => new Received(server.socket()));
    let isOver = false;
    const count = (): void => {
      turn++;
      if (!isOver) setImmediate(count);
    };
    count();
    await Promise.all(silent.map(({ closed }) => closed));
    isOver = true;
    expect([...cutInTurn.values()].reduce((sum, one) => sum + one, 0)).toBe(300);
    // One turn of the counter can cover two turns of the server.
    expect(Math.max(...cutInTurn.values())).toBeLessThanOrEqual(60);
  });

  test('a connection that sends its preface byte by byte is closed', async () => {
    await start({ handshakeTimeoutMs: 1000 });
    const socket = server.socket();
    const received = new Received(socket);
    let sent = 0;
    const trickle = setInterval(() => socket.write(PREFACE.subarray(sent, ++sent)), 60);
    await received.closed;
    clearInterval(trickle);
    expect(sent).toBeLessThan(PREFACE.length);
  });

  test('a TLS handshake that never starts, or stops half-way, is closed in time', async () => {
    const authority = new CertificateAuthority();
    const material = { ...authority.issue('DNS:localhost'), clientCa: undefined };
    await start({ handshakeTimeoutMs: 1000, tls: { material, clientSan: undefined } }, authority.cert);
    const silent = new Received(server.socket());
    const half = server.socket();
    const halfReceived = new Received(half);
    // A record header that announces a ClientHello, which never arrives.
    half.write(Buffer.of(0x16, 3, 1, 1, 0, 1));
    const tlsSocket = connectTls({
      socket: server.socket(),
      ca: authority.cert,
      servername: 'localhost',
      ALPNProtocols: ['h2'],
    });
    tlsSocket.on('error', () => {});
    tlsSocket.resume();
    await Promise.all([silent.closed, halfReceived.closed, once(tlsSocket, 'close')]);
    await server.untilComplaint(/TLS handshake/);
    await server.untilComplaint(/did not start HTTP\/2/);
  });
});

describe('clients that do not read', () => {
  test('a client that leaves its socket full is no longer read, and is closed above the limit', async () => {
    await start(limits({ maxOutputBytes: 1_000_000, connectionWindowBytes: 1_000_000 }));
    // The windows are so large that only the socket holds answers back.
    const { socket } = connectWithPreface(
      frame(TYPE.WINDOW_UPDATE, 0, 0, words(0x7fff_0000)),
      [4, 0x7fff_ffff],
    );
    socket.pause();
    for (const id of ids(1000)) socket.write(call(id, '/large'));
    await server.untilComplaint(/does not read the responses/);
  });

  test('a client that reads byte by byte and then stops is closed by keep-alive', async () => {
    await start({ keepAliveIntervalMs: 500, keepAliveTimeoutMs: 500 });
    const { socket, received } = connectWithPreface(call(1, '/large'), [4, 1]);
    socket.write(frame(TYPE.WINDOW_UPDATE, 0, 1, words(1)));
    await received.closed;
    await waitFor('the end of its stream', () => server.handler.resets === 1);
  });
});

describe('many connections', () => {
  test('a connection above the maximum is closed and counted, and a later one is accepted', async () => {
    await start({ maxConnections: 20 });
    const others = ids(19).map(() => connectWithPreface());
    await Promise.all(
      others.map(({ received }) =>
        waitFor('settings', () => received.frames.some(({ type }) => type === TYPE.SETTINGS)),
      ),
    );
    const refused = [1, 2, 3].map(() => new Received(server.socket()));
    for (const { closed } of refused) expect(await closed).toHaveLength(0);
    expect(server.complaints).toEqual([expect.stringMatching(/closed immediately: 20 are open/)]);
    for (const { socket } of others) socket.destroy();
    await waitFor('a free place', async () => {
      const { socket, received } = connectWithPreface();
      await waitFor('an answer', () => socket.destroyed || received.frames.length > 0);
      return received.frames.length > 0;
    });
  });

  test('connections in a TLS handshake count', async () => {
    const authority = new CertificateAuthority();
    const material = { ...authority.issue('DNS:localhost'), clientCa: undefined };
    await start({ maxConnections: 3, tls: { material, clientSan: undefined } }, authority.cert);
    const silent = [server.socket(), server.socket()];
    const refused = new Received(server.socket());
    await refused.closed;
    await server.untilComplaint(/closed immediately: 3 are open/);
    for (const socket of silent) socket.destroy();
    await waitFor('their end', () => silent.every(({ destroyed }) => destroyed));
  });

  test('only the connection that uses the most memory is closed when all connections use too much', async () => {
    await start({ maxBufferedBytes: 300_000 });
    const smallClient = connectWithPreface(Buffer.concat(ids(50).map((id) => call(id, '/hold'))));
    await waitFor('held calls', () => server.handler.held.length === 50);
    const largeClient = connectWithPreface(Buffer.concat(ids(400).map((id) => call(id, '/hold'))));
    expect(await goawayCode(largeClient.received)).toBe(ERROR_CODE.ENHANCE_YOUR_CALM);
    await server.untilComplaint(/was closed: all connections together used more than 300000 bytes of memory/);
    expect(server.handler.resets).toBeGreaterThan(200);
    expect(smallClient.socket.destroyed).toBe(false);
    const before = smallClient.received.frames.length;
    for (const stream of server.handler.held.slice(0, 50)) stream.reset(ERROR_CODE.CANCEL);
    await waitFor('their end', () => smallClient.received.frames.length >= before + 50);
  });

  test('unread answers count, and their connection ends without a GOAWAY', async () => {
    await start({ maxBufferedBytes: 1_000_000, ...limits({ maxOutputBytes: 1e9 }) });
    const { received } = connectWithPreface(Buffer.concat(ids(40).map((id) => call(id, '/large'))), [4, 0]);
    await received.closed;
    await server.untilComplaint(/this connection used the most/);
  });

  test('sixteen clients that send at full speed get a few units of work per turn of the event loop', async () => {
    await start(limits({ maxConcurrentStreams: 1_000_000 }));
    const { handler } = server;
    // Each answer takes a while, as a decision does; the test counts work instead of time.
    let answered = 0;
    const onRequest = handler.onRequest.bind(handler);
    handler.onRequest = (stream, endStream) => {
      answered++;
      onRequest(stream, endStream);
    };
    const all = Buffer.concat(ids(5000).map((id) => call(id, '/')));
    const floods = ids(16).map(() => connectWithPreface(all));
    let most = 0;
    let before = 0;
    await new Promise<void>((resolve) => {
      const count = (): void => {
        most = Math.max(most, answered - before);
        before = answered;
        if (answered < 80_000) setImmediate(count);
        else resolve();
      };
      count();
    });
    // Without turns, the work is more than a thousand units for each connection.
    expect(most).toBeLessThan(16 * 600);
    for (const { socket } of floods) socket.destroy();
  });
});

describe('thousands of streams', () => {
  test('a client that sends megabytes gets as many turns as other clients', async () => {
    await start({ ...limits({ maxConcurrentStreams: 1_000_000 }), maxBufferedBytes: 1e9 });
    const { held } = server.handler;
    const all = Buffer.concat(ids(100_000).map((id) => call(id, '/hold')));
    // The sender runs in its own thread, because it must send while the server reads. It leaves the connection open,
    // because the server would not read what arrives with the end of a connection.
    const sender = new Worker(
      `const { port, bytes } = require('node:worker_threads').workerData;
       require('node:net').connect(port, '127.0.0.1').resume().on('error', () => {}).write(bytes);`,
      { eval: true, workerData: { port: server.port, bytes: Buffer.concat([PREFACE, settings(), all]) } },
    );
    let before = 0;
    let most = 0;
    await new Promise<void>((resolve) => {
      const count = (): void => {
        most = Math.max(most, held.length - before);
        before = held.length;
        if (held.length < 100_000) setImmediate(count);
        else resolve();
      };
      count();
    });
    await sender.terminate();
    // libuv reads up to 2 MiB from a socket at once if as much has arrived.
    expect((most * all.length) / 100_000).toBeLessThan(300_000);
  });

  test('half-open streams on a hundred connections do not affect other clients', async () => {
    await start();
    const attackers = ids(100).map(() =>
      connectWithPreface(Buffer.concat(ids(1000).map((id) => call(id, '/half-open', 0)))),
    );
    // The server would not read what arrives with the end of a connection.
    await waitFor('their streams', () => server.handler.begun.get('/half-open') === 100_000);
    await caller.untilAnswered();
    for (const { socket } of attackers) socket.destroy();
    await waitFor('their end', () => server.handler.resets === 100_000);
  });

  test('a rapid reset ends with ENHANCE_YOUR_CALM (CVE-2023-44487)', async () => {
    await start(limits({ resetBurst: 500, resetRefillPerSecond: 1 }));
    const { received } = connectWithPreface(
      Buffer.concat(ids(2000).map((id) => Buffer.concat([call(id, '/hold'), rst(id, ERROR_CODE.CANCEL)]))),
    );
    expect(await goawayCode(received)).toBe(ERROR_CODE.ENHANCE_YOUR_CALM);
    expect(server.handler.held.length).toBeLessThanOrEqual(501);
    await server.untilComplaint(/was closed: the peer reset too many streams/);
  });
});

test('a flood of PING ends with ENHANCE_YOUR_CALM', async () => {
  await start(limits({ controlBurst: 1000, controlRefillPerSecond: 1 }));
  const { received } = connectWithPreface(
    Buffer.concat([call(1, '/', 0), ...Array.from({ length: 3000 }, () => ping())]),
  );
  expect(await goawayCode(received)).toBe(ERROR_CODE.ENHANCE_YOUR_CALM);
  await server.untilComplaint(/too many frames that do not belong to a request/);
});

describe('half-closed connections', () => {
  test('unread answers count until the connection ends, even after the client has closed its side', async () => {
    await start({ ...limits({ maxOutputBytes: 2 ** 30 }), maxBufferedBytes: 2 ** 30 });
    const held = (): number => server.server.load().bufferedBytes;
    const socket = server.socket();
    socket.pause();
    const calls = [...ids(400).map((id) => call(id, '/large')), call(801, '/hold')];
    const window = 2 ** 31 - 1;
    const greeting = [PREFACE, settings([4, window]), SETTINGS_ACK, windowUpdate(0, window - 65_535)];
    socket.write(Buffer.concat([...greeting, ...calls]));
    // This is more than the buffers of the operating system hold.
    await waitFor('all calls to be there, and much to be held', () => {
      return server.handler.held.length === 1 && held() > 8_000_000;
    });
    socket.end();
    await waitFor('the server to read that', () => server.handler.resets === 1);
    expect(held()).toBeGreaterThan(8_000_000);
    socket.destroy();
    await waitFor('nothing to be held', () => held() < 100_000);
  });
});
