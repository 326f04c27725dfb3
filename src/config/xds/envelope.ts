/** Maximum number of resources in one update. Each resource is a domain. */
export const MAX_RESOURCES = 10_000;
/** Maximum size of an update in bytes, whatever the value of XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES. */
export const MAX_UPDATE_BYTES = 64 * 1024 * 1024;
/**
 * Maximum length in bytes of a version and a nonce, which are sent back. Type URLs are read up to this length, which is
 * longer than weir's type.
 */
const MAX_TEXT_BYTES = 65_536;

/** Fields of envoy.service.discovery.v3.DiscoveryResponse. */
const [VERSION_INFO, RESOURCES, TYPE_URL, NONCE] = [1, 2, 4, 5];
/** Wire types of protobuf. */
const [VARINT, FIXED64, LENGTH_DELIMITED, FIXED32] = [0, 1, 2, 5];

/** A DiscoveryResponse whose resources are not decoded yet. */
export interface Envelope {
  readonly versionInfo: string;
  readonly typeUrl: string;
  readonly nonce: string;
  /** The whole message. */
  readonly bytes: Uint8Array;
  /** Why the update is rejected without loading it; undefined if it can be loaded. */
  readonly refusal: string | undefined;
}

/**
 * Reads the fields of a DiscoveryResponse around its resources, and counts the resources. The deciding thread does no
 * more than this with an update, because another thread decodes it. Throws an Error for bytes that are not such a
 * message.
 */
export function readEnvelope(bytes: Uint8Array): Envelope {
  const texts = new Map<number, string>();
  let resources = 0;
  let at = 0;
  while (at < bytes.length) {
    const [tag, next] = varint(bytes, at);
    const field = Math.floor(tag / 8);
    const wire = tag % 8;
    if (field === 0) throw new Error('a field has the number 0');
    at = next;
    if (wire === VARINT) [, at] = varint(bytes, at);
    else if (wire === FIXED64) at += 8;
    else if (wire === FIXED32) at += 4;
    else if (wire === LENGTH_DELIMITED) {
      const [length, begin] = varint(bytes, at);
      at = begin + length;
      if (field === RESOURCES) resources++;
      else if (field === VERSION_INFO || field === TYPE_URL || field === NONCE) {
        if (length > MAX_TEXT_BYTES && field !== TYPE_URL) {
          throw new Error(`field ${field} is longer than ${MAX_TEXT_BYTES} bytes`);
        }
        if (at <= bytes.length) texts.set(field, text(bytes, begin, Math.min(at, begin + MAX_TEXT_BYTES)));
      }
    } else throw new Error(`wire type ${wire} is unknown`);
    if (at > bytes.length) throw new Error('the message ends in the middle of a field');
  }
  return {
    versionInfo: texts.get(VERSION_INFO) ?? '',
    typeUrl: texts.get(TYPE_URL) ?? '',
    nonce: texts.get(NONCE) ?? '',
    bytes,
    refusal: refusalOf(resources, bytes.length),
  };
}

function refusalOf(resources: number, bytes: number): string | undefined {
  if (resources > MAX_RESOURCES) {
    return `the update has ${resources} resources; send at most ${MAX_RESOURCES}`;
  }
  if (bytes > MAX_UPDATE_BYTES) {
    return `the update has ${bytes} bytes; send at most ${MAX_UPDATE_BYTES}`;
  }
  return undefined;
}

/**
 * Reads a protobuf varint of up to 64 bits at `from`. Returns its value, rounded above 2^53, and the position of its
 * end. Throws an Error if it does not end within ten bytes or within the input.
 */
function varint(bytes: Uint8Array, from: number): readonly [value: number, end: number] {
  let value = 0;
  for (let i = 0; i < 10; i++) {
    const byte = bytes[from + i];
    if (byte === undefined) break;
    value += (byte % 128) * 128 ** i;
    if (byte < 128) return [value, from + i + 1];
  }
  throw new Error('a number is incomplete or longer than 10 bytes');
}

function text(bytes: Uint8Array, begin: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + begin, end - begin).toString('utf8');
}
