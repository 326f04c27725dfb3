/* Encodes RateLimitRequests, including some that no client library sends. */
import { gzipSync } from 'node:zlib';

/** Largest message that weir accepts by default (GRPC_MAX_MESSAGE_BYTES). */
export const MESSAGE_BYTES = 4_194_304;

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 128);
  }
}

/** Encodes a length-delimited field (protobuf wire type 2). */
export function field(number: number, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
}

/** Repeats bytes as often as possible within `total` bytes. */
export function repeat(bytes: Uint8Array, total: number): Buffer {
  return Buffer.alloc(Math.floor(total / bytes.length) * bytes.length, bytes);
}

/** Encodes an entry as a field of a descriptor. */
export function entry(key: string, value: string): Buffer {
  return field(1, Buffer.concat([field(1, key), field(2, value)]));
}

/** Encodes a RateLimitDescriptor as a field of a request. */
export function descriptor(...entries: (readonly [key: string, value: string])[]): Buffer {
  return field(2, Buffer.concat(entries.map(([key, value]) => entry(key, value))));
}

/** Encodes a RateLimitDescriptor with an override of 1 request per hour (unit 3) as a field of a request. */
export function overriding(key: string, value: string): Buffer {
  return field(2, Buffer.concat([entry(key, value), field(2, Buffer.of(8, 1, 16, 3))]));
}

/** Encodes a RateLimitRequest whose fields are already encoded. */
export function request(domain: string, ...fields: readonly Uint8Array[]): Buffer {
  return Buffer.concat([field(1, domain), ...fields]);
}

/** Encodes a request that begins with `fields`, and repeats one encoded field up to `total` bytes. */
export function filled(domain: string, piece: Uint8Array, total: number, ...fields: Uint8Array[]): Buffer {
  const head = request(domain, ...fields);
  return Buffer.concat([head, repeat(piece, total - head.length)]);
}

/** Encodes a request with one descriptor, which repeats one encoded field up to `total` bytes. */
export function filledDescriptor(domain: string, piece: Uint8Array, total = MESSAGE_BYTES): Buffer {
  return request(domain, field(2, repeat(piece, total - domain.length - 16)));
}

export function gzip(message: Uint8Array): Buffer {
  return gzipSync(message, { level: 9 });
}

/** Fields without content: a descriptor for a request, an entry for a descriptor, and an unknown field for either. */
export const EMPTY = {
  descriptor: Buffer.of(0x12, 0),
  entry: Buffer.of(0x0a, 0),
  unknown: Buffer.of(0x7a, 0),
};

/** Encodes an HTTP/1.1 request with a Host header that the debug port accepts on loopback. */
export function http(method: 'GET' | 'POST', path: string, body: Uint8Array | string = ''): Buffer {
  const bytes = Buffer.from(body);
  const head = [`${method} ${path} HTTP/1.1`, 'host: localhost'];
  if (method === 'POST') head.push('content-type: application/json', `content-length: ${bytes.length}`);
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]);
}
