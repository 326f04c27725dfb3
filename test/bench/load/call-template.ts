import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE } from '../../../src/h2/frame/frame-type.js';

/** Stands in a message for the tenant; each call puts the digits of its own there. */
export const TENANT = 'tenant-0000000';
const DIGITS = 7;

/**
 * What all calls of a connection share, encoded before the first: HEADERS directly followed by DATA with END_STREAM.
 */
export interface CallTemplate {
  /** Of the first call: fields as literals that enter the dynamic table (RFC 7541 section 6.2.1). */
  readonly first: Buffer;
  /** Of every later one: indexed fields only, as Envoy's are. */
  readonly later: Buffer;
  /** Flow-controlled bytes of a call. */
  readonly dataBytes: number;
  /** Digits of the tenant, counted from the end of the frames: where each last one stands. */
  readonly digitsFromEnd: readonly number[];
}

/**
 * Literal with incremental indexing, name from the static table (RFC 7541 appendix A) or new. Strings below 127 bytes.
 */
function literal(name: number | string, value: string): Buffer {
  const head = typeof name === 'number' ? [0x40 | name] : [0x40, name.length, ...Buffer.from(name)];
  return Buffer.concat([Buffer.from([...head, value.length]), Buffer.from(value)]);
}

function framed(type: number, flags: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

/** `message` is an encoded RateLimitRequest in which {@link TENANT} may occur. */
export function callTemplate(message: Uint8Array, scheme: 'http' | 'https', authority: string): CallTemplate {
  // :method POST and :scheme stand in the static table.
  const method = [0x83, scheme === 'http' ? 0x86 : 0x87];
  const literals = [
    literal(4, SHOULD_RATE_LIMIT_PATH),
    literal(1, authority),
    literal(31, 'application/grpc'),
    literal('te', 'trailers'),
    literal(58, 'weir-bench'),
  ];
  // The dynamic table begins at 62 with the youngest entry.
  const indexed = literals.map((_, i) => 0x80 | (62 + literals.length - 1 - i));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const data = framed(FRAME_TYPE.DATA, FLAG.END_STREAM, Buffer.concat([prefix, message]));
  const call = (block: Uint8Array) =>
    Buffer.concat([framed(FRAME_TYPE.HEADERS, FLAG.END_HEADERS, block), data]);
  const digitsFromEnd: number[] = [];
  for (let at = data.indexOf(TENANT); at >= 0; at = data.indexOf(TENANT, at + 1)) {
    digitsFromEnd.push(data.length - (at + TENANT.length - 1));
  }
  return {
    first: call(Buffer.concat([Buffer.from(method), ...literals])),
    later: call(Buffer.from([...method, ...indexed])),
    dataBytes: prefix.length + message.length,
    digitsFromEnd,
  };
}

/** Writes one call into `output` at `start`; returns where it ends. */
export function writeCall(
  output: Buffer,
  start: number,
  template: CallTemplate,
  streamId: number,
  tenant: number,
): number {
  const frames = streamId === 1 ? template.first : template.later;
  output.set(frames, start);
  const end = start + frames.length;
  output.writeUInt32BE(streamId, start + 5);
  output.writeUInt32BE(streamId, end - template.dataBytes - FRAME_HEADER_BYTES + 5);
  for (let i = 0; i < template.digitsFromEnd.length; i++) {
    const last = end - (template.digitsFromEnd[i] as number);
    let rest = tenant;
    for (let digit = 0; digit < DIGITS; digit++) {
      output[last - digit] = 48 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
  }
  return end;
}
