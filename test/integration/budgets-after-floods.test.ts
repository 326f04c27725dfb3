import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import { descriptor, request } from '../attack/wire.js';
import {
  END_STREAM,
  frame,
  headers,
  PREFACE,
  rst,
  SETTINGS_ACK,
  settings,
  TYPE,
  words,
} from '../support/h2/h2-frames.js';
import { prefixed } from '../support/h2/http2-client.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1000000 }
`;
const CONNECTIONS = 12;
const STREAMS = 30;
const SETTINGS_INITIAL_WINDOW_SIZE = 4;
const WATCH_PATH = '/grpc.health.v1.Health/Watch';
const REFLECTION_PATH = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';

let weir: WeirServer;
/** The sockets of the current test. */
let sockets: Socket[] = [];

beforeAll(async () => {
  weir = await startWeir({ policy: POLICY });
});

// Sockets of a failed test must not affect the next one.
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await waitFor('the connections to be gone', async () => (await gauges())['grpc_connections'] === 0);
});

type Gauges = Readonly<Record<string, number>>;

/** Returns the gauges of {@link ALL_RETURNED}. */
async function gauges(): Promise<Gauges> {
  const { body } = await httpRequest(weir.httpPort, '/metrics');
  const lines = [...body.matchAll(/^weir_(\S+) (\S+)$/gm)];
  const values = lines.map(([, name = '', value]) => [name, Number(value)] as const);
  return Object.fromEntries(values.filter(([name]) => name in ALL_RETURNED));
}

/** The gauges of held bytes and of waiting calls, without any request. */
const ALL_RETURNED: Gauges = {
  large_requests_waiting: 0,
  large_requests_waiting_bytes: 0,
  grpc_connections: 0,
  grpc_buffered_bytes: 0,
  'grpc_waiting{for="reads"}': 0,
  'grpc_waiting{for="answers"}': 0,
  'grpc_waiting{for="deadlines"}': 0,
  'grpc_waiting{for="inflating"}': 0,
  'grpc_waiting{for="lost"}': 0,
};

async function untilReturned(expected: Gauges = ALL_RETURNED): Promise<void> {
  let seen: Gauges = {};
  await waitFor('every budget to be back', async () => {
    seen = await gauges();
    return JSON.stringify(sorted(seen)) === JSON.stringify(sorted(expected));
  }).catch(() => expect(seen).toEqual(expected));
}

function sorted(of: Gauges): [string, number][] {
  return Object.entries(of).sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Returns bytes that gzip cannot compress. */
function incompressible(length: number): Buffer {
  let state = 1;
  return Buffer.from(
    Array.from({ length }, () => {
      state = (state * 48_271) % 2_147_483_647;
      return state & 0xff;
    }),
  );
}

const LARGE = prefixed(
  request('d', ...Array.from({ length: 120 }, (_, at) => descriptor(['k', `${at}`.padEnd(40, 'v')]))),
);
/** Too long to inflate at once, and more than the first frames of a window can carry. */
const COMPRESSED = prefixed(gzipSync(incompressible(50_000)), true);

interface Phase {
  readonly path?: string;
  readonly fields?: readonly string[];
  /** Bytes that follow the head; if undefined, nothing follows, and the request stays open. */
  readonly body?: Buffer;
  readonly whole?: boolean;
  /** A gauge that must rise above 0 during the phase. */
  readonly seen: string;
}

const PHASES: Readonly<Record<string, Phase>> = {
  'nothing but heads': { seen: 'grpc_buffered_bytes' },
  'half of a prefix': { body: Buffer.of(0, 0), seen: 'grpc_waiting{for="deadlines"}' },
  'half of a message': { body: LARGE.subarray(0, 3000), seen: 'grpc_waiting{for="deadlines"}' },
  'half of a compressed message': {
    fields: ['grpc-encoding: gzip'],
    body: COMPRESSED.subarray(0, 9000),
    seen: 'grpc_buffered_bytes',
  },
  'compressed messages that are inflated': {
    fields: ['grpc-encoding: gzip'],
    body: COMPRESSED,
    whole: true,
    seen: 'grpc_connections',
  },
  'requests that take long': { body: LARGE, whole: true, seen: 'grpc_connections' },
  'health that is watched': {
    path: WATCH_PATH,
    body: prefixed(Buffer.alloc(0)),
    whole: true,
    seen: 'grpc_buffered_bytes',
  },
  'half of a question to reflection': {
    path: REFLECTION_PATH,
    body: prefixed(Buffer.alloc(3000)).subarray(0, 2000),
    seen: 'grpc_buffered_bytes',
  },
};

function streams({ path = SHOULD_RATE_LIMIT_PATH, fields = [], body, whole }: Phase, more: string[]): Buffer {
  const frames: Buffer[] = [];
  for (let id = 1; id < 2 * STREAMS; id += 2) {
    frames.push(
      headers(
        id,
        0,
        ':method: POST',
        ':scheme: http',
        `:path: ${path}`,
        ':authority: weir',
        'content-type: application/grpc',
        'te: trailers',
        ...fields,
        ...more,
      ),
    );
    for (let at = 0; body !== undefined && at < body.length; at += 16_384) {
      const isLast = at + 16_384 >= body.length;
      frames.push(
        frame(TYPE.DATA, isLast && whole === true ? END_STREAM : 0, id, body.subarray(at, at + 16_384)),
      );
    }
  }
  return Buffer.concat(frames);
}

/** Fills {@link sockets} with connections that send all their streams, and never read. */
function begin(phase: Phase, ...more: string[]): void {
  const bytes = Buffer.concat([
    PREFACE,
    settings([SETTINGS_INITIAL_WINDOW_SIZE, 0]),
    SETTINGS_ACK,
    streams(phase, more),
  ]);
  sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = connect(weir.grpcPort, '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    socket.write(bytes);
    return socket;
  });
}

const resets = (): Buffer =>
  Buffer.concat(Array.from({ length: STREAMS }, (_, index) => rst(1 + 2 * index, 8)));

const ENDS: Readonly<Record<string, (socket: Socket) => void>> = {
  'RST_STREAM, and then the end': (socket) => socket.end(resets()),
  'the end of its side': (socket) => socket.end(),
  'a reset of the connection': (socket) => socket.resetAndDestroy(),
  'GOAWAY, and then the end': (socket) => socket.end(frame(TYPE.GOAWAY, 0, 0, words(0, 0))),
  'a breach of the protocol': (socket) => socket.end(frame(TYPE.PING, 0, 0, Buffer.alloc(3))),
};

describe.each(Object.entries(PHASES))('after a flood of %s', (_name, phase) => {
  test.each(Object.entries(ENDS))('and %s all budgets return to zero', async (_end, end) => {
    begin(phase);
    await waitFor(`${phase.seen} above zero`, async () => ((await gauges())[phase.seen] ?? 0) > 0);
    for (const socket of sockets) {
      end(socket);
      socket.resume();
    }
    await untilReturned();
  });

  test('and RST_STREAM all budgets except for connections return to zero', async () => {
    begin(phase);
    await waitFor('all connections', async () => (await gauges())['grpc_connections'] === CONNECTIONS);
    for (const socket of sockets) {
      socket.write(resets());
      socket.resume();
    }
    await untilReturned({ ...ALL_RETURNED, grpc_connections: CONNECTIONS });
    for (const socket of sockets) socket.destroy();
    await untilReturned();
  });
});

test('half-received calls leave only their connections behind soon after their deadline', async () => {
  const half = PHASES['half of a message'] as Phase;
  begin(half, 'grpc-timeout: 600m');
  await waitFor('deadlines', async () => ((await gauges())['grpc_waiting{for="deadlines"}'] ?? 0) > 0);
  for (const socket of sockets) socket.resume();
  await untilReturned({ ...ALL_RETURNED, grpc_connections: CONNECTIONS });
  for (const socket of sockets) socket.destroy();
  await untilReturned();
});

test('frames that are truncated anywhere leave only their connections behind', async () => {
  const bytes = Buffer.concat([
    PREFACE,
    settings(),
    SETTINGS_ACK,
    frame(TYPE.PING, 0, 0, Buffer.alloc(8)),
    ...Array.from({ length: 20 }, () => frame(0xbe, 0, 0, Buffer.alloc(1000))),
    frame(TYPE.PING, 0, 0, Buffer.alloc(8)),
  ]);
  sockets = [1, 8, 200, 600, 1000].map((left) => {
    const socket = connect(weir.grpcPort, '127.0.0.1').setNoDelay(true);
    socket.on('error', () => {});
    socket.write(bytes.subarray(0, bytes.length - 17 - left));
    return socket;
  });
  await waitFor('halves of frames', async () => ((await gauges())['grpc_buffered_bytes'] ?? 0) >= 5 * 512);
  for (const [index, left] of [1, 8, 200, 600, 1000].entries()) {
    sockets[index]?.resume().write(bytes.subarray(bytes.length - 17 - left));
  }
  await untilReturned({ ...ALL_RETURNED, grpc_connections: 5 });
});

test('truncated bodies of /json free their budget for others', async () => {
  // More calls than can be open at once, and more bytes than can be held.
  for (let round = 0; round < 12; round++) {
    const sockets = Array.from({ length: 100 }, () => {
      const socket = connect(weir.httpPort, '127.0.0.1');
      socket.on('error', () => {});
      socket.write('POST /json HTTP/1.1\r\nhost: weir\r\ncontent-length: 1000000\r\n\r\n');
      socket.write(Buffer.alloc(20_000, ' '));
      return socket;
    });
    await Promise.all(
      sockets.map((socket) => waitFor('the bytes to leave', () => socket.writableLength === 0 || undefined)),
    );
    for (const socket of sockets) socket.resetAndDestroy();
  }
  const body = JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'user', value: 'u' }] }] });
  // The last connections can still be closing.
  await waitFor(
    'a decision',
    async () =>
      (await httpRequest(weir.httpPort, '/json', { method: 'POST', body })).status === 200 || undefined,
  );
});
