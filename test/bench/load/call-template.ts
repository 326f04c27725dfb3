import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE } from '../../../src/h2/frames.js';
import { frame } from '../../support/h2/h2-frames.js';
import { prefixed } from '../../support/h2/http2-client.js';

/** Placeholder for the tenant in a message. Each call replaces the digits with the number of its tenant. */
export const TENANT = 'tenant-0000000';
export const TENANT_DIGITS = 7;
/** Placeholder for each character of a hold token in a message that ends a request. */
export const TOKEN = '~';

/** The frames that all calls of a connection share: HEADERS, directly followed by DATA with END_STREAM. */
export interface CallTemplate {
  /** Frames of the first call, which adds its fields to the dynamic table (RFC 7541 section 6.2.1). */
  readonly first: Buffer;
  /** Frames of all other calls, with indexed fields only, as Envoy sends them. */
  readonly later: Buffer;
  /** Flow-controlled bytes of a call. */
  readonly dataBytes: number;
  /** Positions of the last digits of the tenants, counted from the end of the frames. */
  readonly digitsFromEnd: readonly number[];
  /** Position of the hold token, counted from the end of the frames. */
  readonly tokenFromEnd: number;
}

/**
 * Encodes a literal with incremental indexing. `name` is an index of the static table (RFC 7541 appendix A) or a new
 * name. Strings must be shorter than 127 bytes.
 */
function literal(name: number | string, value: string): Buffer {
  const head = typeof name === 'number' ? [0x40 | name] : [0x40, name.length, ...Buffer.from(name)];
  return Buffer.concat([Buffer.from([...head, value.length]), Buffer.from(value)]);
}

/** Creates a template. `message` is an encoded RateLimitRequest, which may contain {@link TENANT}. */
export function callTemplate(message: Uint8Array, scheme: 'http' | 'https', authority: string): CallTemplate {
  // The static table contains :method POST and :scheme.
  const method = [0x83, scheme === 'http' ? 0x86 : 0x87];
  const literals = [
    literal(4, SHOULD_RATE_LIMIT_PATH),
    literal(1, authority),
    literal(31, 'application/grpc'),
    literal('te', 'trailers'),
    literal(58, 'weir-bench'),
  ];
  // The newest entry of the dynamic table has the index 62.
  const indexed = literals.map((_, i) => 0x80 | (62 + literals.length - 1 - i));
  const body = prefixed(message);
  const data = frame(FRAME_TYPE.DATA, FLAG.END_STREAM, 0, body);
  const call = (block: Uint8Array) =>
    Buffer.concat([frame(FRAME_TYPE.HEADERS, FLAG.END_HEADERS, 0, block), data]);
  const digitsFromEnd: number[] = [];
  for (let at = data.indexOf(TENANT); at >= 0; at = data.indexOf(TENANT, at + 1)) {
    digitsFromEnd.push(data.length - (at + TENANT.length - 1));
  }
  return {
    first: call(Buffer.concat([Buffer.from(method), ...literals])),
    later: call(Buffer.from([...method, ...indexed])),
    dataBytes: body.length,
    digitsFromEnd,
    tokenFromEnd: data.length - data.indexOf(TOKEN),
  };
}

/** Writes a call of a tenant, or with a hold token, to `output` at `start`. Returns the end of the call. */
export function writeCall(
  output: Buffer,
  start: number,
  template: CallTemplate,
  streamId: number,
  tenant: number,
  token?: Uint8Array,
): number {
  const frames = streamId === 1 ? template.first : template.later;
  output.set(frames, start);
  const end = start + frames.length;
  output.writeUInt32BE(streamId, start + 5);
  output.writeUInt32BE(streamId, end - template.dataBytes - FRAME_HEADER_BYTES + 5);
  if (token !== undefined) output.set(token, end - template.tokenFromEnd);
  for (let i = 0; i < template.digitsFromEnd.length; i++) {
    const last = end - (template.digitsFromEnd[i] as number);
    let rest = tenant;
    for (let digit = 0; digit < TENANT_DIGITS; digit++) {
      output[last - digit] = 48 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
  }
  return end;
}
