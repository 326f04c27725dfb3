/* Messages with the maximum number of entries, descriptors or other elements, in plain and gzip gRPC and in JSON. */
import { DEFAULT_BOUNDS } from '../../../src/codec/messages.js';
import type { Attack } from '../attack/attack.js';
import type { StallCase } from '../stall-case.js';
import {
  descriptor,
  EMPTY,
  field,
  filled,
  filledDescriptor,
  gzip,
  http,
  MESSAGE_BYTES,
  request,
} from '../wire.js';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

function plain(message: () => Uint8Array, streams = 1): () => Attack {
  return () => ({ kind: 'grpc', messages: [message()], streams });
}

function zipped(message: () => Uint8Array): () => Attack {
  return () => ({ kind: 'grpc', messages: [gzip(message())], gzip: true, streams: 8 });
}

function requestWith(descriptors: number, entries: number): Buffer {
  const all = numbers(descriptors).map((n) =>
    descriptor(...numbers(entries).map((at) => [at === 0 ? 'v' : `k${at}`, `value${n}`] as const)),
  );
  return request('any', ...all);
}

const invalidUtf8 = (): Buffer =>
  request(
    'any',
    field(2, field(1, Buffer.concat([field(1, 'v'), field(2, Buffer.alloc(MESSAGE_BYTES - 64, 0xff))]))),
  );

/** Cases for both codecs. */
export const MESSAGE_CASES: readonly StallCase[] = [
  { name: '4 MiB of empty entries', attack: plain(() => filledDescriptor('any', EMPTY.entry)) },
  { name: '4 MiB of empty descriptors', attack: plain(() => filled('any', EMPTY.descriptor)) },
  {
    name: '4 MiB of entries',
    attack: plain(() => filledDescriptor('any', descriptor(['a', 'b']).subarray(2))),
  },
  { name: '4 MiB of descriptors', attack: plain(() => filled('any', descriptor(['a', 'b']))) },
  { name: '4 MiB of unknown fields', attack: plain(() => filled('any', EMPTY.unknown)) },
  { name: '4 MiB of invalid UTF-8', attack: plain(invalidUtf8) },
  {
    name: '4 MiB of empty entries in 4 KB of gzip',
    attack: zipped(() => filledDescriptor('any', EMPTY.entry)),
  },
  {
    name: '4 MiB of empty descriptors in 4 KB of gzip',
    attack: zipped(() => filled('any', EMPTY.descriptor)),
  },
  {
    name: '256 KB of empty entries in gzip',
    attack: zipped(() => filledDescriptor('any', EMPTY.entry, 262_000)),
  },
  { name: '9,999 descriptors', attack: plain(() => requestWith(9999, 1)) },
  { name: '1,000 descriptors', attack: plain(() => requestWith(1000, 1), 2) },
  { name: '1,000 descriptors with 10 entries', attack: plain(() => requestWith(1000, 10), 2) },
  { name: 'one descriptor with 10,000 entries', attack: plain(() => requestWith(1, 10_000), 2) },
];

function json(body: string, pipelined = 1): () => Attack {
  return () => ({ kind: 'http', port: 'http', request: http('POST', '/json', body), pipelined });
}

/** Repeats `piece`, as often as a body for `/json` may contain it. */
const fill = (piece: string): string =>
  piece.repeat(Math.floor((DEFAULT_BOUNDS.maxBytes - 128) / piece.length));

export const JSON_CASES: readonly StallCase[] = [
  {
    name: '/json, 64 KB of empty entries',
    attack: json(`{"domain":"any","descriptors":[{"entries":[${fill('{},')}{}]}]}`),
  },
  {
    name: '/json, 64 KB of empty descriptors',
    attack: json(`{"domain":"any","descriptors":[${fill('{},')}{}]}`),
  },
  {
    name: '/json, 64 KB of nested lists',
    attack: json(`{"domain":${fill('[')}`),
  },
  { name: '/json, 64 KB of an unexpected list', attack: json(`{"domain":[${fill('0,')}0]}`) },
  {
    name: '/json, 64 KB of one value',
    attack: json(`{"domain":"any","descriptors":[{"entries":[{"key":"v","value":"${fill('\\u0061')}"}]}]}`),
  },
  {
    name: '/json, 128 descriptors with 1,000 entries',
    attack: json(
      `{"domain":"any","descriptors":[${numbers(125)
        .map((n) => `{"entries":[${Array(8).fill(`{"key":"v","value":"${n}"}`).join(',')}]}`)
        .join(',')},{},{},{}]}`,
    ),
  },
  {
    name: '/json, 256 KB in chunks of a byte',
    attack: () => ({
      kind: 'http',
      port: 'http',
      request: Buffer.from(
        'POST /json HTTP/1.1\r\nhost: weir\r\ntransfer-encoding: ' +
          `chunked\r\n\r\n${'1\r\n \r\n'.repeat(43_000)}0\r\n\r\n`,
      ),
      pipelined: 1,
    }),
  },
  {
    name: '/healthcheck, 1,800 pipelined',
    attack: () => ({ kind: 'http', port: 'http', request: http('GET', '/healthcheck'), pipelined: 1800 }),
  },
  {
    name: 'unknown Expect header, 1,200 pipelined',
    attack: () => ({
      kind: 'http',
      port: 'http',
      request: Buffer.from('GET /healthcheck HTTP/1.1\r\nhost: weir\r\nexpect: x\r\n\r\n'),
      pipelined: 1200,
    }),
  },
];
