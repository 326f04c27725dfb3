import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  fromJson,
  fromJsonString,
  type JsonValue,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import {
  DecodeError,
  type DescriptorStatus,
  type ExceededBound,
  type HeaderValue,
  type RateLimitRequest,
  type RateLimitResponse,
  type RequestBounds,
} from './messages.js';
import { protoFiles } from './proto-files.js';

/** A RateLimitRequest of protobuf-es. */
interface ReadRequest {
  readonly domain: string;
  readonly descriptors: readonly {
    readonly entries: readonly { readonly key: string; readonly value: string }[];
    readonly limit?: { readonly requestsPerUnit: number; readonly unit: number };
    readonly hitsAddend?: bigint;
    readonly isNegativeHits: boolean;
  }[];
  readonly hitsAddend: number;
}

/** Integers in 64-bit fields that JSON.parse would round. */
const LONG_HITS = /("(?:hitsAddend|hits_addend)"\s*:\s*)([1-9]\d{15,})(?![\d.eE])/g;
/**
 * Maximum depth of lists and objects. A request has five levels, and JSON.parse takes milliseconds for thousands of
 * them, in which other callers wait.
 */
const MAX_DEPTH = 16;
/** Maximum number of characters of an error message, which may quote a value. */
const MAX_MESSAGE = 400;

const UTF8 = new TextDecoder('utf-8', { fatal: true });

let schema: DescMessage | undefined;

function requestSchema(): DescMessage {
  const file = protoFiles().map(({ descriptor }) => fromBinary(FileDescriptorProtoSchema, descriptor));
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
  const found = registry.getMessage('envoy.service.ratelimit.v3.RateLimitRequest');
  if (found === undefined) throw new Error('the proto files of the build do not contain RateLimitRequest');
  return found;
}

/**
 * Decodes a RateLimitRequest in protobuf JSON (https://protobuf.dev/programming-guides/json/). Unknown and repeated
 * fields are errors, as in Go's protojson. Throws {@link DecodeError} with a sentence for the caller.
 */
export function requestFromJson(json: Uint8Array, bounds: RequestBounds): RateLimitRequest {
  schema ??= requestSchema();
  if (isDeeperThan(json, MAX_DEPTH))
    throw new DecodeError(`the body has more than ${MAX_DEPTH} levels of nesting`);
  try {
    // A quoted number is the same number, and keeps all of its digits.
    const text = UTF8.decode(json).replace(LONG_HITS, '$1"$2"');
    const value = JSON.parse(text) as JsonValue;
    const exceeded = cutAtBound(value, bounds);
    // An unknown field or a wrong type ends here, because the second reading of a large text takes milliseconds.
    const first = fromJson(schema, value);
    // Only the text shows whether a field is repeated.
    const message = exceeded === undefined ? fromJsonString(schema, text) : first;
    return { ...requestOf(message as unknown as ReadRequest), exceeded };
  } catch (error) {
    const { message } = error as Error;
    const reason = message.startsWith('cannot decode') ? message : `the body is not JSON: ${message}`;
    throw new DecodeError(reason.slice(0, MAX_MESSAGE));
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** In ASCII, braces are brackets with another bit. */
const CASE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

function isDeeperThan(json: Uint8Array, most: number): boolean {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number;
    if (byte === QUOTE) isString = !isString;
    else if (isString) {
      if (byte === BACKSLASH) at++;
    } else if ((byte | CASE_BIT) === OPEN) {
      if (++depth > most) return true;
    } else if ((byte | CASE_BIT) === CLOSE) depth--;
  }
  return false;
}

/** Shortens the lists of a request to the bounds. Returns the bound that a list exceeds first. */
function cutAtBound(
  value: unknown,
  { maxDescriptors, maxEntries }: RequestBounds,
): ExceededBound | undefined {
  const { descriptors } = Object(value) as { readonly descriptors?: unknown };
  if (!Array.isArray(descriptors)) return undefined;
  let entriesLeft = maxEntries;
  for (const [at, descriptor] of descriptors.entries()) {
    if (at === maxDescriptors) {
      descriptors.length = at;
      return 'descriptors';
    }
    const { entries } = Object(descriptor) as { readonly entries?: unknown };
    if (!Array.isArray(entries)) continue;
    if (entries.length > entriesLeft) {
      entries.length = entriesLeft;
      descriptors.length = at + 1;
      return 'entries';
    }
    entriesLeft -= entries.length;
  }
  return undefined;
}

function requestOf({ domain, descriptors, hitsAddend }: ReadRequest): RateLimitRequest {
  return {
    domain,
    descriptors: descriptors.map(({ entries, limit, hitsAddend: hits, isNegativeHits }) => ({
      entries: entries.map(({ key, value }) => ({ key, value })),
      limit: limit && { requestsPerUnit: limit.requestsPerUnit, unit: limit.unit },
      hitsAddend: hits === undefined ? undefined : Math.min(Number(hits), Number.MAX_SAFE_INTEGER),
      isNegativeHits,
    })),
    hitsAddend,
  };
}

/** Names of the codes and units, by number. The default, 0, is omitted. */
const CODES = [undefined, 'OK', 'OVER_LIMIT'];
const UNITS = [undefined, 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];

/** Encodes a response in protobuf JSON, without fields that have their default value. */
export function responseToJson(response: RateLimitResponse): string {
  const { rawBody } = response;
  // JSON.stringify omits undefined.
  return JSON.stringify({
    overallCode: CODES[response.overallCode],
    statuses: unlessEmpty(response.statuses.map(statusToJson)),
    responseHeadersToAdd: unlessEmpty(response.responseHeadersToAdd.map(headerToJson)),
    requestHeadersToAdd: unlessEmpty(response.requestHeadersToAdd.map(headerToJson)),
    rawBody: rawBody?.length ? Buffer.from(rawBody).toString('base64') : undefined,
    dynamicMetadata: response.dynamicMetadata,
  });
}

function statusToJson(status: DescriptorStatus): object {
  const { currentLimit, durationUntilResetSeconds } = status;
  return {
    code: CODES[status.code],
    currentLimit: currentLimit && {
      requestsPerUnit: currentLimit.requestsPerUnit || undefined,
      unit: UNITS[currentLimit.unit],
      name: currentLimit.name || undefined,
    },
    limitRemaining: status.limitRemaining || undefined,
    durationUntilReset: durationUntilResetSeconds === undefined ? undefined : `${durationUntilResetSeconds}s`,
  };
}

function headerToJson({ key, value }: HeaderValue): object {
  return { key: key || undefined, value: String(value) || undefined };
}

function unlessEmpty<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length === 0 ? undefined : list;
}
