/* Unusual HTTP/2 frames and many small requests, sent as fast as possible. */
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import type { StallCase } from '../stall/stall-case.js';
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
import type { Attack, FrameAttack } from './attacker/attack.js';
import { descriptor, MESSAGE_BYTES, request } from './wire.js';

const CALLS_PER_WRITE = 200;

const head = (id: number, flags = END_HEADERS, ...more: string[]): Buffer =>
  frame(TYPE.HEADERS, flags, id, block(...callFields(SHOULD_RATE_LIMIT_PATH), ...more));

/** Concatenates the frames of `count` streams. `one` returns the frames of a stream id. */
function times(count: number, one: (id: number) => Uint8Array): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, n) => one(2 * n + 1)));
}

function frames(repeated: Buffer, more: Partial<FrameAttack> = {}): () => Attack[] {
  return () => [{ kind: 'frames', repeated, ...more }];
}

function tinyCall(id: number): Buffer {
  const message = request('any', descriptor(['v', 'one']));
  return Buffer.concat([head(id), frame(TYPE.DATA, END_STREAM, id, prefixed(message))]);
}

const CANCEL = 8;
const manyFields = Array.from({ length: 1500 }, (_, n) => `x${n % 10}: y`);

function pipelined(count: number, ...headers: string[]): () => Attack[] {
  const request = Buffer.from(['GET /healthcheck HTTP/1.1', 'host: weir', ...headers, '', ''].join('\r\n'));
  return () => [{ kind: 'http', port: 'http', request, pipelined: count }];
}

export const FLOOD_CASES: readonly StallCase[] = [
  { name: '/healthcheck, 1,800 pipelined', attacks: pipelined(1800) },
  {
    name: '/json, 43 KB in chunks of a byte',
    attacks: () => [
      {
        ...{ kind: 'http', port: 'http', pipelined: 1 },
        request: Buffer.from(
          'POST /json HTTP/1.1\r\nhost: weir\r\ntransfer-encoding: ' +
            `chunked\r\n\r\n${'1\r\n \r\n'.repeat(43_000)}0\r\n\r\n`,
        ),
      },
    ],
  },
  { name: 'unknown Expect header, 1,200 pipelined', attacks: pipelined(1200, 'expect: x') },
  {
    name: 'tiny calls, 256 at once',
    attacks: () => [{ kind: 'grpc', messages: [request('any', descriptor(['v', 'one']))], streams: 256 }],
  },
  { name: 'tiny calls without flow control', attacks: frames(times(CALLS_PER_WRITE, tinyCall)) },
  {
    name: 'tiny calls with unread answers',
    attacks: frames(times(CALLS_PER_WRITE, tinyCall), { unread: true }),
  },
  {
    name: 'header lists of 16 KB, one field',
    attacks: frames(times(20, (id) => head(id, END_HEADERS | END_STREAM, `x: ${'y'.repeat(15_500)}`))),
  },
  {
    name: 'header lists of 1,500 fields',
    attacks: frames(times(20, (id) => head(id, END_HEADERS | END_STREAM, ...manyFields))),
  },
  {
    name: 'CONTINUATION in small pieces',
    attacks: frames(
      times(CALLS_PER_WRITE, (id) =>
        Buffer.concat([
          head(id, 0),
          ...Array.from({ length: 30 }, () => frame(TYPE.CONTINUATION, 0, id, block('x: y'))),
          frame(TYPE.CONTINUATION, END_HEADERS, id),
        ]),
      ),
    ),
  },
  {
    name: 'SETTINGS',
    attacks: frames(times(CALLS_PER_WRITE, () => settings([4, 70_000], [1, 0], [1, 4096]))),
  },
  { name: 'PING', attacks: frames(times(1000, () => ping())) },
  { name: 'WINDOW_UPDATE', attacks: frames(times(1000, () => frame(TYPE.WINDOW_UPDATE, 0, 0, words(1)))) },
  { name: 'frames of an unknown type', attacks: frames(times(1000, () => frame(0x20, 0, 0))) },
  {
    name: 'calls reset after the headers',
    attacks: frames(times(CALLS_PER_WRITE, (id) => Buffer.concat([head(id), rst(id, CANCEL)]))),
  },
  {
    name: 'calls reset after the message',
    attacks: frames(times(CALLS_PER_WRITE, (id) => Buffer.concat([tinyCall(id), rst(id, CANCEL)]))),
  },
  {
    name: 'half-received messages of 4 MB',
    attacks: () => [
      { kind: 'grpc', messages: [Buffer.alloc(MESSAGE_BYTES - 64, 'a')], streams: 64, incomplete: true },
    ],
  },
];
