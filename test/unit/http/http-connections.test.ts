import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type HttpEndpoint,
  type HttpListener,
  type HttpOptions,
  listenHttp,
  text,
} from '../../../src/http/http.js';
import { RenderQueue, TextView } from '../../../src/http/text-view.js';
import { waitFor } from '../../support/process/wait-for.js';

const listeners: HttpListener[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
});

async function listen(
  endpoints: readonly HttpEndpoint[],
  options: Partial<HttpOptions> = {},
): Promise<HttpListener> {
  const onError = (error: unknown): never => {
    throw error;
  };
  const listener = await listenHttp('127.0.0.1', 0, { endpoints, onError, ...options });
  listeners.push(listener);
  return listener;
}

/** Opens a connection. `got` returns the received bytes as latin1, `closed` whether the connection is closed. */
async function open(port: number): Promise<{ socket: Socket; got(): string; closed(): boolean }> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  let all = '';
  let closed = false;
  socket.setEncoding('latin1').on('data', (data) => {
    all += String(data);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
  });
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  return { socket, got: () => all, closed: () => closed };
}

const answers = (got: string): number => got.split('HTTP/1.1 200 OK').length - 1;

describe('a client that does not wait for answers', () => {
  test.each([
    ['short requests', 'GET / HTTP/1.1\r\nHost: h\r\n\r\n'],
    ['requests without a host', 'GET / HTTP/1.1\r\n\r\n'],
    ['requests with an expectation that nobody knows', 'GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n'],
    [
      'requests for which it wants to be told to continue',
      'GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n',
    ],
  ])('is disconnected after %s, of which at most one is handled', async (_, request) => {
    let asked = 0;
    const { port } = await listen([
      {
        path: '/',
        help: 'answers',
        answer() {
          asked++;
          return text(200, 'x');
        },
      },
    ]);
    const { socket, closed } = await open(port);
    socket.write(request.repeat(5000));
    await waitFor('the end', async () => closed() || undefined);
    expect(asked).toBeLessThanOrEqual(1);
  });

  test('is disconnected while an answer is pending, and no drain waits for its requests', async () => {
    let asked = 0;
    const { port, drain } = await listen([
      {
        path: '/post',
        help: 'waits',
        maxBodyBytes: 10,
        answer() {
          asked++;
          return new Promise(() => {});
        },
      },
    ]);
    const { socket, closed } = await open(port);
    const head = 'POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}';
    socket.write(head);
    await waitFor('the first request', async () => asked === 1 || undefined);
    socket.write(head);
    await waitFor('the end', async () => closed() || undefined);
    // If a request still counted as running, the drain would take its full time.
    let drained = false;
    void drain(5000).then(() => {
      drained = true;
    });
    await new Promise(setImmediate);
    expect({ asked, drained }).toEqual({ asked: 1, drained: true });
  });
});

describe('bytes in small pieces', () => {
  test('many requests with any bodies, each after the answer to the one before', async () => {
    const bodies: string[] = [];
    const { port } = await listen([
      {
        path: '/post',
        help: 'keeps bodies',
        maxBodyBytes: 1_000_000,
        answer({ body, query }) {
          bodies.push(`${query.get('n')}:${body.length}`);
          return text(200, 'done\n');
        },
      },
    ]);
    const { socket, got } = await open(port);
    const expected: string[] = [];
    for (let n = 0; n < 60; n++) {
      const body = `\r\n\r\nGET /odd HTTP/1.1\r\n\r\n${'x'.repeat(n * 97)}`;
      const head = `POST /post?n=${n} HTTP/1.1\r\nHost: h\r\n`;
      socket.write(
        n % 2 === 0
          ? `${head}Content-Length: ${body.length}\r\n\r\n${body}`
          : `${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      );
      expected.push(`${n}:${body.length}`);
      await waitFor(`answer ${n}`, async () => answers(got()) === n + 1 || undefined);
    }
    expect(bodies).toEqual(expected);
  });

  test('a body that nobody reads, before the next request', async () => {
    const { port } = await listen([{ path: '/', help: 'answers', answer: () => text(200, 'x') }]);
    const { socket, got } = await open(port);
    const body = 'y'.repeat(200_000);
    for (let n = 1; n <= 2; n++) {
      socket.write(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      await waitFor(`answer ${n}`, async () => answers(got()) === n || undefined);
    }
  });

  test('a turn of the event loop reads only a part of what many clients send', async () => {
    const { port } = await listen([
      { path: '/', help: 'reads', maxBodyBytes: 100_000, answer: () => text(200, 'x') },
    ]);
    const clients = await Promise.all(Array.from({ length: 20 }, () => open(port)));
    // 65,000 bytes in chunks of one byte take tens of milliseconds if they are parsed at once.
    const head = 'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n';
    const body = `${head}${'1\r\nx\r\n'.repeat(10_000)}0\r\n\r\n`;
    let turns = 0;
    const count = (): void => {
      turns++;
      if (!clients.every(({ socket }) => socket.destroyed)) setImmediate(count);
    };
    setImmediate(count);
    for (const { socket } of clients) socket.write(body);
    await waitFor('every answer', async () => clients.every(({ got }) => answers(got()) === 1) || undefined);
    expect(turns).toBeGreaterThan(20);
  });
});

describe('connections', () => {
  const simple: HttpEndpoint = { path: '/', help: 'answers', answer: () => text(200, 'x') };

  test('above the bound replace the connection that has been idle longest', async () => {
    const { port } = await listen([simple], { maxConnections: 3 });
    const held = [await open(port), await open(port), await open(port)];
    held[0]?.socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    await waitFor('an answer', async () => answers(held[0]?.got() ?? '') === 1 || undefined);
    const probe = await open(port);
    probe.socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    await waitFor('the answer of the probe', async () => answers(probe.got()) === 1 || undefined);
    await waitFor('the end of the idle one', async () => held[1]?.closed() || undefined);
    expect(held.map(({ closed }) => closed())).toEqual([false, true, false]);
  });

  test('that wait for answers are also replaced', async () => {
    const waits: HttpEndpoint = { path: '/wait', help: 'waits', answer: () => new Promise(() => {}) };
    const { port } = await listen([simple, waits], { maxConnections: 2 });
    const held = [await open(port), await open(port)];
    for (const { socket } of held) socket.write('GET /wait HTTP/1.1\r\nHost: h\r\n\r\n');
    const probe = await open(port);
    probe.socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    await waitFor('the answer of the probe', async () => answers(probe.got()) === 1 || undefined);
    expect(held.filter(({ closed }) => closed())).toHaveLength(1);
  });

  test('get a consistent text, even if other clients read slowly or disconnect', async () => {
    // More bytes than the buffers of a connection hold.
    const LONG = 12_000_000;
    let version = 0;
    const view = new TextView(new RenderQueue(), () =>
      String.fromCharCode(97 + (version++ % 26)).repeat(LONG),
    );
    const long: HttpEndpoint = {
      path: '/long',
      help: 'is long',
      answer: async () => ({ status: 200, contentType: 'text/plain', body: await view.text() }),
    };
    const { port } = await listen([long], { maxUnreadBytes: Infinity });
    const ask = async (): Promise<Awaited<ReturnType<typeof open>>> => {
      const asked = await open(port);
      asked.socket.write('GET /long HTTP/1.1\r\nHost: h\r\n\r\n');
      return asked;
    };
    const bodyAt = (got: string): number => got.indexOf('\r\n\r\n') + 4;
    const isWhole = (got: string): boolean => got.length - bodyAt(got) === LONG;
    const isOne = (got: string): boolean => {
      const body = got.slice(bodyAt(got));
      return body === body.charAt(0).repeat(LONG);
    };
    const slow = await ask();
    slow.socket.pause();
    await waitFor('the first text', async () => version > 0 || undefined);
    for (let round = 0; round < 2; round++) {
      const gone = await ask();
      const reader = await ask();
      if (round % 2 === 0) gone.socket.destroy();
      await waitFor('the whole text', async () => isWhole(reader.got()) || undefined);
      expect(isOne(reader.got())).toBe(true);
      reader.socket.destroy();
      gone.socket.destroy();
    }
    slow.socket.resume();
    await waitFor('the slow text', async () => isWhole(slow.got()) || undefined);
    expect(isOne(slow.got())).toBe(true);
  });

  test('that read too slowly are closed before all texts exceed the bound', async () => {
    const texts: Buffer[] = [];
    const long: HttpEndpoint = {
      path: '/long',
      help: 'is long',
      answer: () => {
        const body = Buffer.alloc(12_000_000, 'x');
        texts.push(body);
        return { status: 200, contentType: 'text/plain', body };
      },
    };
    const { port } = await listen([long], { maxUnreadBytes: 1 });
    const slow = await open(port);
    slow.socket.pause();
    slow.socket.write('GET /long HTTP/1.1\r\nHost: h\r\n\r\n');
    await waitFor('the first text', async () => texts.length === 1 || undefined);
    const reader = await open(port);
    reader.socket.write('GET /long HTTP/1.1\r\nHost: h\r\n\r\n');
    const head = 'HTTP/1.1 200 OK';
    await waitFor(
      'all of the second',
      async () =>
        (reader.got().startsWith(head) && reader.got().length > (texts[1]?.length ?? Infinity)) || undefined,
    );
    slow.socket.resume();
    await waitFor('the end of the slow one', async () => slow.closed() || undefined);
    expect(slow.got().length).toBeLessThan(texts[0]?.length ?? 0);
  });
});
