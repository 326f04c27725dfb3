import {
  type Descriptor,
  type DescriptorEntry,
  LIMIT_UNIT,
  type LimitUnit,
  type RateLimitOverride,
  type RateLimitRequest,
} from '../../codec/messages.js';
import { MAX_UINT32 } from '../../limiter/rate.js';
import type { LineFault } from './lines/line-fields.js';

/** A call that a line contains, and the number of its descriptors that end holds, which are left out. */
export interface LineCall {
  readonly request: RateLimitRequest;
  readonly holdEnds: number;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Begins the value of an entry that the decision log does not show. */
const REDACTED = '[redacted sha256:';
/** Value of an entry with a hold token in the decision log. */
const HOLD_TOKEN = '[hold token]';
const DECIMAL = /^\d+$/;

/** Reads the value of WEIR_CALL: the request that a line of the log contains. */
export function readCall(text: string): RateLimitRequest {
  const { descriptors, ...request } = JSON.parse(text) as RateLimitRequest;
  // JSON omits members that are undefined.
  return { ...request, descriptors: descriptors.map((one) => ({ ...NO_OPTIONS, ...one })) };
}

const NO_OPTIONS = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };

/** Returns the call of a line of weir's decision log, or why it cannot be read. */
export function callOfDecision(line: JsonObject): LineCall | LineFault {
  const descriptors = descriptorsOf(line['descriptors'], (descriptor) => {
    const entries = entryList(descriptor['entries']);
    const sent = entryList(descriptor['sent']);
    // Entries can be derived again only from values that the log shows.
    const isShown = sent?.every(({ value }) => !value.startsWith(REDACTED));
    return entries && optionsOf(descriptor, isShown === true && sent !== undefined ? sent : entries);
  });
  return callOf(line, descriptors, Number.MAX_SAFE_INTEGER);
}

/**
 * Returns the call of a line with `domain` and `descriptors`, or why it cannot be read. A descriptor is written as
 * envoy.extensions.common.ratelimit.v3.RateLimitDescriptor, or as `{"key": "value"}`.
 */
export function callOfRequest(line: JsonObject): LineCall | LineFault {
  const descriptors = descriptorsOf(line['descriptors'], (descriptor) => {
    const entries = 'entries' in descriptor ? entryList(descriptor['entries']) : shortEntries(descriptor);
    if (entries === undefined) return undefined;
    return 'entries' in descriptor ? optionsOf(descriptor, entries) : { ...NO_OPTIONS, entries };
  });
  return callOf(line, descriptors, MAX_UINT32);
}

/** `maxHits`: the most hits that a descriptor may have. */
function callOf(
  line: JsonObject,
  all: readonly Descriptor[] | undefined,
  maxHits: number,
): LineCall | LineFault {
  const { domain } = line;
  if (typeof domain !== 'string' || all === undefined) return 'no_descriptors';
  const hitsAddend = numberOf(line, 'hits_addend', 'hitsAddend') ?? 0;
  const isWhole = (number: number, most: number): boolean =>
    Number.isInteger(number) && number >= 0 && number <= most;
  const areWhole = all.every(
    ({ hitsAddend: hits = 0, limit }) =>
      isWhole(hits, maxHits) && isWhole(limit?.requestsPerUnit ?? 0, MAX_UINT32),
  );
  if (!areWhole || !isWhole(hitsAddend, MAX_UINT32)) return 'bad_number';
  const descriptors = all.filter(({ entries }) => entries.every(({ value }) => value !== HOLD_TOKEN));
  return { request: { domain, descriptors, hitsAddend }, holdEnds: all.length - descriptors.length };
}

function descriptorsOf(
  value: unknown,
  read: (descriptor: JsonObject) => Descriptor | undefined,
): readonly Descriptor[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const found = value.map((one: unknown) => (isObject(one) ? read(one) : undefined));
  return found.every((one) => one !== undefined) ? found : undefined;
}

function optionsOf(descriptor: JsonObject, entries: readonly DescriptorEntry[]): Descriptor {
  return {
    entries,
    limit: overrideOf(descriptor['override'] ?? descriptor['limit']),
    hitsAddend: numberOf(descriptor, 'hits', 'hits_addend', 'hitsAddend'),
    isNegativeHits: descriptor['refund'] === true || descriptor['is_negative_hits'] === true,
  };
}

function entryList(value: unknown): readonly DescriptorEntry[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const entries = value.map((one: unknown) => {
    if (!isObject(one) || typeof one['key'] !== 'string') return undefined;
    return { key: one['key'], value: typeof one['value'] === 'string' ? one['value'] : '' };
  });
  return entries.every((one) => one !== undefined) ? entries : undefined;
}

/** Reads `{"tenant": "acme", "path": "/a"}`. */
function shortEntries(descriptor: JsonObject): readonly DescriptorEntry[] | undefined {
  const entries = Object.entries(descriptor).map(([key, value]) => ({ key, value: String(value) }));
  return Object.values(descriptor).some((value) => typeof value === 'object') ? undefined : entries;
}

/** Reads envoy.type.v3.RateLimitUnit with its count. */
function overrideOf(value: unknown): RateLimitOverride | undefined {
  if (!isObject(value)) return undefined;
  const requestsPerUnit = numberOf(value, 'requests_per_unit', 'requestsPerUnit');
  const { unit } = value;
  const names: Readonly<Record<string, LimitUnit>> = LIMIT_UNIT;
  const number = typeof unit === 'string' ? (names[unit.toLowerCase()] ?? LIMIT_UNIT.unknown) : unit;
  return requestsPerUnit === undefined || typeof number !== 'number'
    ? undefined
    : { requestsPerUnit, unit: number };
}

/**
 * Returns the first of some members that exists, or NaN if it is not a number. JSON of protobuf writes long numbers as
 * texts.
 */
function numberOf(object: JsonObject, ...names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = object[name] ?? undefined;
    if (value === undefined) continue;
    if (isObject(value)) return numberOf(value, 'value');
    if (typeof value === 'number') return value;
    return typeof value === 'string' && DECIMAL.test(value) ? Number(value) : Number.NaN;
  }
  return undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
