/* RateLimitRequests as bytes, including some that no client library writes. */
import { gzipSync } from 'node:zlib';

/** Largest message that weir takes by default (GRPC_MAX_MESSAGE_BYTES). */
export const MESSAGE_BYTES = 4_194_304;
/** Largest header list that Envoy can be made to take, and so the largest value that comes through it: 60 KB. */
export const ENVOY_BYTES = 61_440;

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 128);
  }
}

/** A field with a length (protobuf wire type 2). */
export function field(number: number, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
}

/** So often that `total` bytes are not exceeded. */
export function repeat(bytes: Uint8Array, total: number): Buffer {
  return Buffer.alloc(Math.floor(total / bytes.length) * bytes.length, bytes);
}

/** An entry, as a field of a descriptor. */
export function entry(key: string, value: string): Buffer {
  return field(1, Buffer.concat([field(1, key), field(2, value)]));
}

/** RateLimitDescriptor, as a field of the request. */
export function descriptor(...entries: (readonly [key: string, value: string])[]): Buffer {
  return field(2, Buffer.concat(entries.map(([key, value]) => entry(key, value))));
}

/** RateLimitRequest of fields that are encoded already. */
export function request(domain: string, ...fields: readonly Uint8Array[]): Buffer {
  return Buffer.concat([field(1, domain), ...fields]);
}

/** A request filled up to `total` bytes with one piece, again and again. */
export function filled(domain: string, piece: Uint8Array, total = MESSAGE_BYTES): Buffer {
  const head = field(1, domain);
  return Buffer.concat([head, repeat(piece, total - head.length)]);
}

/** A request whose one descriptor is filled up to `total` bytes with one piece, again and again. */
export function filledDescriptor(domain: string, piece: Uint8Array, total = MESSAGE_BYTES): Buffer {
  return request(domain, field(2, repeat(piece, total - domain.length - 16)));
}

export function gzip(message: Uint8Array): Buffer {
  return gzipSync(message, { level: 9 });
}

/**
 * A field without content: an empty descriptor in a request, an empty entry in a descriptor, an unknown field in
 * either.
 */
export const EMPTY = {
  descriptor: Buffer.of(0x12, 0),
  entry: Buffer.of(0x0a, 0),
  unknown: Buffer.of(0x7a, 0),
};

/** An HTTP/1.1 request, to a name that views and administration on loopback are shown to. */
export function http(method: 'GET' | 'POST', path: string, body: Uint8Array | string = ''): Buffer {
  const bytes = Buffer.from(body);
  const head = [`${method} ${path} HTTP/1.1`, 'host: localhost'];
  if (method === 'POST') head.push('content-type: application/json', `content-length: ${bytes.length}`);
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]);
}
