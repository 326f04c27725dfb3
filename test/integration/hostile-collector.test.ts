/* Tests that weir bounds the time and the size of endless answers from a collector of traces. */
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: one, rate_limit: { unit: day, requests_per_unit: 1 } }
`;
const EARLY = Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n'.repeat(500));
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

let server: WeirServer | undefined;
let collector: Server | Http2Server | undefined;
let sockets: Socket[];

afterEach(async () => {
  await server?.stop();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => collector?.close(resolve));
});

/** Writes the same bytes repeatedly, as fast as they are read. */
function flood(socket: Socket, bytes: Buffer): void {
  if (socket.destroyed) return;
  if (socket.write(bytes)) setImmediate(() => flood(socket, bytes));
  else socket.once('drain', () => flood(socket, bytes));
}

/** Starts weir with the collector, and makes weir send a span. */
async function start(made: Server | Http2Server, protocol: 'http' | 'grpc', env = {}): Promise<void> {
  collector = made;
  sockets = [];
  collector.on('connection', (socket: Socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => collector?.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  server = await startWeir({
    policy: POLICY,
    env: {
      TRACING_ENABLED: 'true',
      TRACING_EXPORTER_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      ...env,
    },
  });
  await span();
}

async function span(): Promise<void> {
  const body = JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'one', value: 'a' }] }] });
  await httpRequest(server?.httpPort ?? 0, '/json', { method: 'POST', body });
}

async function reason(): Promise<string> {
  const line = await waitFor('the line', () =>
    server
      ?.log()
      .find(({ msg }) => String(msg).startsWith('the OpenTelemetry collector does not accept spans')),
  );
  return String(line['reason']);
}

test('ends an export with endless informational answers', async () => {
  await start(
    createServer((socket) => socket.once('data', () => flood(socket, EARLY))),
    'http',
  );
  expect(await reason()).toBe('the server sent too many informational responses (1xx)');
  await waitFor('the end of the connection', () => sockets.every(({ destroyed }) => destroyed));
});

test('ends an export with a byte-by-byte answer at the timeout', async () => {
  await start(
    createServer((socket) => {
      const timer = setInterval(() => {
        if (socket.destroyed) clearInterval(timer);
        else socket.write('H');
      }, 50);
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nx: '));
    }),
    'http',
    { OTEL_EXPORTER_OTLP_TIMEOUT: '1000' },
  );
  expect(await reason()).toMatch(/^no answer within \d+ ms$/);
  await waitFor('the end of the connection', () => sockets.every(({ destroyed }) => destroyed));
});

test.each(['0', '-5'])(
  'Retry-After: %s delays the exporter within its own limits, and prints nothing',
  async (told) => {
    let exports = 0;
    const busy = `HTTP/1.1 503 Busy\r\nretry-after: ${told}\r\ncontent-length: 0\r\n\r\n`;
    await start(
      createServer((socket) => socket.on('data', () => socket.write(++exports === 1 ? busy : OK))),
      'http',
    );
    await waitFor('the export to be tried again', () => exports > 1);
    expect(server?.process.stderr()).toBe('');
  },
);

test('keeps a connection between exports, unless the collector sends something in between', async () => {
  let floods = false;
  let exports = 0;
  await start(
    createServer((socket) =>
      socket.on('data', () => {
        exports++;
        socket.write(OK);
        if (floods) setImmediate(() => flood(socket, EARLY));
      }),
    ),
    'http',
  );
  await waitFor('the first export', () => exports >= 1);
  const before = exports;
  await span();
  await waitFor('another export', () => exports > before);
  expect(sockets).toHaveLength(1);
  floods = true;
  await span();
  await waitFor('the end of the connection', () => sockets.every(({ destroyed }) => destroyed));
});

test('ends an export with endless informational answers over gRPC', async () => {
  const made = createHttp2Server();
  const hint = (stream: ServerHttp2Stream): void => {
    if (stream.destroyed || stream.closed) return;
    for (let i = 0; i < 10; i++) stream.additionalHeaders({ ':status': 103, link: '</a>' });
    setImmediate(() => hint(stream));
  };
  made.on('session', (session) => session.on('error', () => {}));
  made.on('stream', (stream) => {
    stream.on('error', () => {});
    hint(stream);
  });
  await start(made, 'grpc');
  await reason();
  await waitFor('the end of the connection', () => sockets.every(({ destroyed }) => destroyed));
});

test('closes a connection with endless empty frames', async () => {
  // A WINDOW_UPDATE of the connection by one byte (RFC 9113, 6.9), which no limit of Node.js counts.
  const empty = Buffer.from('00000408000000000000000001'.repeat(3000), 'hex');
  const settings = Buffer.from('000000040000000000', 'hex');
  const env = { OTEL_EXPORTER_OTLP_TIMEOUT: '60000' };
  const made = createServer((socket) => {
    socket.write(settings);
    socket.once('data', () => flood(socket, empty));
    socket.resume();
  });
  await start(made, 'grpc', env);
  await waitFor('the end of the connection', () => sockets[0]?.destroyed === true);
});
