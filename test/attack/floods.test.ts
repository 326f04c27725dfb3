/* Floods weir with unusual HTTP/2 frames, small requests and views. An innocent caller is answered meanwhile. */
import { beforeAll, expect, test } from '@jest/globals';
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import {
  block,
  callFields,
  END_HEADERS,
  END_STREAM,
  frame,
  ping,
  rst,
  settings,
  TYPE,
  words,
} from '../support/h2/h2-frames.js';
import { prefixed } from '../support/h2/http2-client.js';
import { AttackedServer } from './attacked-server.js';
import type { Attack, FrameAttack } from './attacker/attack.js';
import { Attacker } from './attacker/attacker.js';
import { descriptor, http, MESSAGE_BYTES, request } from './wire.js';

const CALLS_PER_WRITE = 200;

const head = (id: number, flags = END_HEADERS, ...more: string[]): Buffer =>
  frame(TYPE.HEADERS, flags, id, block(...callFields(SHOULD_RATE_LIMIT_PATH), ...more));

/** Concatenates the frames of `count` streams. `one` returns the frames of a stream id. */
function times(count: number, one: (id: number) => Uint8Array): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, n) => one(2 * n + 1)));
}

function frames(repeated: Buffer, more: Partial<FrameAttack> = {}): Attack {
  return { kind: 'frames', repeated, ...more };
}

function tinyCall(id: number): Buffer {
  const message = request('any', descriptor(['v', 'one']));
  return Buffer.concat([head(id), frame(TYPE.DATA, END_STREAM, id, prefixed(message))]);
}

const CANCEL = 8;
const manyFields = Array.from({ length: 1500 }, (_, n) => `x${n % 10}: y`);

function pipelined(count: number, ...headers: string[]): Attack {
  const request = Buffer.from(['GET /healthcheck HTTP/1.1', 'host: weir', ...headers, '', ''].join('\r\n'));
  return { kind: 'http', request, pipelined: count };
}

const FLOODS: Readonly<Record<string, Attack>> = {
  '/healthcheck, 1,800 pipelined': pipelined(1800),
  '/json, 43 KB in chunks of a byte': {
    ...{ kind: 'http', pipelined: 1 },
    request: Buffer.from(
      'POST /json HTTP/1.1\r\nhost: weir\r\ntransfer-encoding: ' +
        `chunked\r\n\r\n${'1\r\n \r\n'.repeat(43_000)}0\r\n\r\n`,
    ),
  },
  'unknown Expect header, 1,200 pipelined': pipelined(1200, 'expect: x'),
  'tiny calls, 256 at once': {
    kind: 'grpc',
    messages: [request('any', descriptor(['v', 'one']))],
    streams: 256,
  },
  'tiny calls without flow control': frames(times(CALLS_PER_WRITE, tinyCall)),
  'tiny calls with unread answers': frames(times(CALLS_PER_WRITE, tinyCall), { unread: true }),
  'header lists of 16 KB, one field': frames(
    times(20, (id) => head(id, END_HEADERS | END_STREAM, `x: ${'y'.repeat(15_500)}`)),
  ),
  'header lists of 1,500 fields': frames(
    times(20, (id) => head(id, END_HEADERS | END_STREAM, ...manyFields)),
  ),
  'CONTINUATION in small pieces': frames(
    times(CALLS_PER_WRITE, (id) =>
      Buffer.concat([
        head(id, 0),
        ...Array.from({ length: 30 }, () => frame(TYPE.CONTINUATION, 0, id, block('x: y'))),
        frame(TYPE.CONTINUATION, END_HEADERS, id),
      ]),
    ),
  ),
  SETTINGS: frames(times(CALLS_PER_WRITE, () => settings([4, 70_000], [1, 0], [1, 4096]))),
  PING: frames(times(1000, () => ping())),
  WINDOW_UPDATE: frames(times(1000, () => frame(TYPE.WINDOW_UPDATE, 0, 0, words(1)))),
  'frames of an unknown type': frames(times(1000, () => frame(0x20, 0, 0))),
  'calls reset after the headers': frames(
    times(CALLS_PER_WRITE, (id) => Buffer.concat([head(id), rst(id, CANCEL)])),
  ),
  'calls reset after the message': frames(
    times(CALLS_PER_WRITE, (id) => Buffer.concat([tinyCall(id), rst(id, CANCEL)])),
  ),
  'half-received messages of 4 MB': {
    kind: 'grpc',
    messages: [Buffer.alloc(MESSAGE_BYTES - 64, 'a')],
    streams: 64,
    incomplete: true,
  },
  '/metrics': { kind: 'http', request: http('GET', '/metrics'), pipelined: 1 },
  '/healthcheck?detail': { kind: 'http', request: http('GET', '/healthcheck?detail'), pipelined: 1 },
};

/** Long enough for several of the most expensive pieces. */
const ATTACK_MS = 300;

let attacker: Attacker;
let server: AttackedServer;
beforeAll(async () => {
  attacker = new Attacker();
  server = await AttackedServer.start();
});

test.each(Object.entries(FLOODS))('%s', async (_name, attack) => {
  await server.askInnocently(attacker.attack({ attacks: [server.aim(attack)], ms: ATTACK_MS }));
  const { bytes } = await attacker.finish();
  expect(bytes).toBeGreaterThan(0);
  expect(server.isAlive()).toBe(true);
});
