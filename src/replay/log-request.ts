import {
  type Descriptor,
  type DescriptorEntry,
  LIMIT_UNIT,
  type RateLimitRequest,
} from '../codec/messages.js';
import {
  type JsonLine,
  type LogMap,
  type MappedCall,
  type MappedHits,
  textAt,
  valueAt,
} from './replay-map.js';
import { MAX_SORTED_MICROS } from './start-order.js';
import { readDuration, TimeReader } from './times.js';

/** The end of holds that a line of the decision log reports. */
export interface LoggedHoldEnd {
  /** Ids of the holds in the token. */
  readonly ids: readonly string[];
  /** Undefined if the use is unknown. */
  readonly used: number | undefined;
}

/** The end of a request, as a map describes it. */
export interface LoggedEnd {
  /** Time from the start to the end; undefined if the line has no readable one. */
  readonly durationMicros: number | undefined;
  /** Hits of the call at the end, and the use of the holds. */
  readonly hits: number | undefined;
  readonly descriptors: readonly Descriptor[];
}

/** A call of weir that a line of the log contains. */
export interface LoggedCall {
  readonly timeMicros: number;
  /** For an access log: the end of the request, when the line was written. */
  readonly writtenMicros?: number;
  /** Without the descriptors that end holds. */
  readonly request: RateLimitRequest;
  /** Whether the log says that the limiter denied it. */
  readonly denied: boolean;
  /** The rules that denied it; empty if the log does not name them. */
  readonly deniedBy: readonly string[];
  /** For a log with a map. */
  readonly end: LoggedEnd | undefined;
  /** Ids of the holds that the call placed. */
  readonly holdIds: readonly string[];
  readonly holdEnds: readonly LoggedHoldEnd[];
}

/** Why a line cannot be read. The texts follow the number of lines. */
export const UNREADABLE = {
  too_long: 'longer than 64 Ki characters',
  not_json: 'not a JSON object',
  no_time: 'without a readable time',
  no_descriptors: 'without the descriptors of a decision log',
  bad_number: 'with hits that are not a whole number',
} as const;

/** Why a line is not a request that the limiter decided. */
export const NO_REQUEST = {
  other_line: "other lines of weir's log",
  no_method: 'without a method',
  not_reached: 'that another filter or Envoy answered before the limiter',
  no_values: 'without the values of any descriptor, for which Envoy does not ask the limiter',
  above_bound: 'that were above a bound and not decided',
} as const;

export type LineFault = keyof typeof UNREADABLE | keyof typeof NO_REQUEST;

/** Facts about the lines that were read, for the notes of the report. */
export class LogFacts {
  /** Smallest `sample` in a decision log. */
  sample = 1;
  /** Lines of a decision log in which values or descriptors are shortened. */
  cut = 0;
  /** Lines of a decision log with holds, or ends of holds, that have no ids. */
  holdsWithoutId = 0;
  /** Requests whose duration cannot be read. */
  badDurations = 0;
  /** An unreadable duration. */
  badDuration: unknown;
  /** Lines with a value of `flags` or `details`. */
  explained = 0;
  /** Members of descriptors that had a value in any line. */
  readonly members = new Set<string>();
}

/** Reads a line of a log. */
export type LineReader = (line: string) => LoggedCall | LineFault;

/** `[redacted sha256:1a2b3c4d]`: the value of an entry that the decision log does not show. */
const REDACTED = '[redacted sha256:';
/** Begins the flags and details of requests that did not reach the limiter. */
const UNREACHED_FLAGS: ReadonlySet<string> = new Set([
  ...['NR', 'DPE', 'UAEX', 'NoRouteFound', 'DownstreamProtocolError', 'UnauthorizedExternalService'],
]);
const UNREACHED_DETAILS =
  /^(?:jwt_authn_access_denied|rbac_access_denied|ext_authz_|local_rate_limited|route_not_found)/;
const LIMITED_DETAILS = 'request_rate_limited';
const LIMITED_FLAGS: ReadonlySet<string> = new Set(['RL', 'RateLimited']);
const TOO_MANY_REQUESTS = '429';

const NONE: readonly never[] = [];

/** Parses a line; undefined if it is not a JSON object. */
export function parseLine(line: string): JsonLine | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JsonLine)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a reader of the lines that a map describes. `wantsEnds`: whether the ends of requests matter. */
export function mappedReader(map: LogMap, wantsEnds: boolean, facts: LogFacts): LineReader {
  const times = new TimeReader();
  return (text) => {
    const line = parseLine(text);
    if (line === undefined) return 'not_json';
    const timeMicros = times.read(valueAt(line, map.time));
    if (timeMicros === undefined) return 'no_time';
    if (map.method !== undefined && !textAt(line, map.method)) return 'no_method';
    const denied = outcomeOf(line, map, facts);
    if (denied === undefined) return 'not_reached';
    const descriptors = descriptorsOf(line, map.start, facts);
    if (descriptors === undefined) return 'bad_number';
    if (descriptors.length === 0) return 'no_values';
    const end = wantsEnds ? endOf(line, map, facts) : undefined;
    if (end === 'bad_number') return end;
    const request = { domain: map.domain, descriptors, hitsAddend: 0 };
    const writtenMicros = timeMicros + lengthOf(line, map);
    return { timeMicros, writtenMicros, request, denied, deniedBy: NONE, end, holdIds: NONE, holdEnds: NONE };
  };
}

/** Returns the time from the start of a request to its line, as far as requests are sorted by it. */
function lengthOf(line: JsonLine, { duration, durationUnitMicros }: LogMap): number {
  if (duration === undefined) return 0;
  return Math.min(readDuration(valueAt(line, duration), durationUnitMicros) ?? 0, MAX_SORTED_MICROS);
}

/** Returns whether the limiter denied the request of a line; undefined if the request did not reach the limiter. */
function outcomeOf(line: JsonLine, map: LogMap, facts: LogFacts): boolean | undefined {
  const flags = map.flags && textAt(line, map.flags);
  const details = map.details && textAt(line, map.details);
  if (flags !== undefined || details !== undefined) facts.explained++;
  const allFlags = flags === undefined ? NONE : flags.split(',');
  if (allFlags.some((flag) => UNREACHED_FLAGS.has(flag))) return undefined;
  if (details !== undefined) {
    if (UNREACHED_DETAILS.test(details)) return undefined;
    return details.startsWith(LIMITED_DETAILS);
  }
  if (map.flags !== undefined) return allFlags.some((flag) => LIMITED_FLAGS.has(flag));
  // A status alone may be the upstream's own, so it counts only if the map names nothing better.
  return (
    map.details === undefined && map.status !== undefined && textAt(line, map.status) === TOO_MANY_REQUESTS
  );
}

/**
 * Returns the descriptors of a call. As in Envoy, a descriptor without the value of an entry is left out. Returns
 * undefined if the hits are not a number.
 */
function descriptorsOf(line: JsonLine, call: MappedCall, facts: LogFacts): readonly Descriptor[] | undefined {
  const hits = hitsOf(line, call.hits);
  if (hits === 'bad_number') return undefined;
  const descriptors: Descriptor[] = [];
  for (const mapped of call.descriptors) {
    const entries: DescriptorEntry[] = [];
    for (let at = 0; at < mapped.length; at++) {
      const { key, from, or } = mapped[at] as (typeof mapped)[number];
      const found = from && textAt(line, from);
      if (found !== undefined && from !== undefined) facts.members.add(from.text);
      const value = found ?? or;
      if (value === undefined) break;
      entries.push({ key, value });
    }
    if (entries.length < mapped.length) continue;
    descriptors.push({ entries, limit: undefined, hitsAddend: hits, isNegativeHits: false });
  }
  return descriptors;
}

function hitsOf(line: JsonLine, hits: MappedHits | undefined): number | undefined | 'bad_number' {
  if (hits === undefined || typeof hits === 'number') return hits;
  const text = textAt(line, hits);
  if (text === undefined) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) && number >= 0 ? number : 'bad_number';
}

function endOf(line: JsonLine, map: LogMap, facts: LogFacts): LoggedEnd | undefined | 'bad_number' {
  if (map.duration === undefined) return undefined;
  const duration = valueAt(line, map.duration);
  const durationMicros = readDuration(duration, map.durationUnitMicros);
  if (durationMicros === undefined) {
    facts.badDurations++;
    facts.badDuration ??= duration ?? null;
  }
  const { end } = map;
  if (end === undefined) return { durationMicros, hits: undefined, descriptors: NONE };
  const hits = hitsOf(line, end.hits);
  const descriptors = descriptorsOf(line, end, facts);
  return hits === 'bad_number' || descriptors === undefined
    ? 'bad_number'
    : { durationMicros, hits, descriptors };
}

/** Returns a reader of weir's decision log, which may share its output with other lines of weir. */
export function decisionReader(facts: LogFacts): LineReader {
  const times = new TimeReader();
  return (text) => {
    const line = parseLine(text);
    if (line === undefined) return 'not_json';
    if (line['decision'] === undefined) return line['level'] === undefined ? 'no_descriptors' : 'other_line';
    const timeMicros = times.read(line['time']);
    if (timeMicros === undefined) return 'no_time';
    if (line['reason'] !== undefined && line['reason'] !== 'unknown_domain') return 'above_bound';
    try {
      return decisionIn(line, timeMicros, facts);
    } catch {
      // A member has another type than those that weir writes.
      return 'no_descriptors';
    }
  };
}

function decisionIn(line: JsonLine, timeMicros: number, facts: LogFacts): LoggedCall | LineFault {
  const { domain, code, sample } = line;
  if (typeof domain !== 'string') return 'no_descriptors';
  const descriptors: Descriptor[] = [];
  const deniedBy: string[] = [];
  const holdIds: string[] = [];
  const holdEnds: LoggedHoldEnd[] = [];
  for (const logged of line['descriptors'] as readonly LoggedDescriptor[]) {
    const end = holdsIn(logged, holdIds, facts);
    if (end !== undefined) {
      holdEnds.push(end);
      continue;
    }
    const descriptor = descriptorIn(logged);
    if (typeof descriptor === 'string') return descriptor;
    descriptors.push(descriptor);
    if (logged.code === 'OVER_LIMIT' && typeof logged.rule === 'string') deniedBy.push(logged.rule);
  }
  if (typeof sample === 'number' && sample < facts.sample) facts.sample = sample;
  if (line['cut'] === true) facts.cut++;
  const request = { domain, descriptors, hitsAddend: 0 };
  return { timeMicros, request, denied: code === 'OVER_LIMIT', deniedBy, end: undefined, holdIds, holdEnds };
}

/** A descriptor as server/decision-log/decision-log.ts writes it. Any member may be missing or wrong. */
interface LoggedDescriptor {
  readonly entries?: unknown;
  readonly sent?: unknown;
  readonly hits?: unknown;
  readonly refund?: unknown;
  readonly override?: { readonly requests_per_unit?: unknown; readonly unit?: unknown } | null;
  readonly rule?: unknown;
  readonly code?: unknown;
  readonly holds?: readonly { readonly event?: unknown; readonly id?: unknown; readonly used?: unknown }[];
}

/** Value of an entry with a hold token. */
const HIDDEN_TOKEN = '[hold token]';

/** Collects the ids of the holds that a descriptor placed. Returns the end of holds if it had a hold token. */
function holdsIn(logged: LoggedDescriptor, placed: string[], facts: LogFacts): LoggedHoldEnd | undefined {
  const { entries, holds, hits } = logged;
  if (holds === undefined) return undefined;
  const ids: string[] = [];
  let isKnown = true;
  let hasId = true;
  for (const { id, event, used } of holds) {
    if (typeof id === 'string') (event === 'placed' ? placed : ids).push(id);
    else if (event === 'placed' || event === 'settled') hasId = false;
    // The line shows the slots of a limit on concurrent requests as their use, and 1 hit for an unknown use.
    if (event === 'settled' && used === undefined) isKnown = false;
  }
  const isEnd = (entries as readonly DescriptorEntry[]).some(({ value }) => value === HIDDEN_TOKEN);
  // The oldest hold of a bucket ends with the entries of the bucket, and needs no id.
  if (!hasId && (isEnd || holds.some(({ event }) => event === 'placed'))) facts.holdsWithoutId++;
  return isEnd ? { ids, used: isKnown ? (hits as number | undefined) : undefined } : undefined;
}

function descriptorIn(logged: LoggedDescriptor): Descriptor | LineFault {
  const { hits, override, refund } = logged;
  const entries = entriesIn(logged.entries);
  const sent = logged.sent === undefined ? undefined : entriesIn(logged.sent);
  if (entries === undefined) return 'no_descriptors';
  if (hits !== undefined && !(Number.isSafeInteger(hits) && (hits as number) >= 0)) return 'bad_number';
  // Entries can be derived again only from values that the log shows.
  const isShown = sent?.every(({ value }) => !value.startsWith(REDACTED)) === true;
  return {
    entries: isShown && sent !== undefined ? sent : entries,
    limit: override === undefined || override === null ? undefined : overrideOf(override),
    hitsAddend: hits as number | undefined,
    isNegativeHits: refund === true,
  };
}

function entriesIn(value: unknown): readonly DescriptorEntry[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const entries = value as readonly Partial<DescriptorEntry>[];
  const isEntry = (entry: Partial<DescriptorEntry> | null): boolean =>
    typeof entry?.key === 'string' && typeof entry.value === 'string';
  return entries.every(isEntry) ? (value as readonly DescriptorEntry[]) : undefined;
}

/** Reads an override. weir writes its unit as the name or the number of envoy.type.v3.RateLimitUnit. */
function overrideOf({
  requests_per_unit: requests,
  unit,
}: NonNullable<LoggedDescriptor['override']>): Descriptor['limit'] {
  const names: Readonly<Record<string, number>> = LIMIT_UNIT;
  const number = typeof unit === 'string' ? (names[unit.toLowerCase()] ?? 0) : Number(unit);
  return { requestsPerUnit: Number(requests), unit: number };
}
