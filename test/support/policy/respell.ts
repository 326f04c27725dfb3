/* Generates other spellings of a policy that behave the same, including the names of buckets and statistics. */

type Json = Readonly<Record<string, unknown>>;
/** Returns an integer from 0 to below `below`. */
type Chance = (below: number) => number;

/** Defaults for rules that do not set a field. */
interface Inherited {
  readonly file: Json;
  readonly phase: unknown;
  readonly algorithm: string;
  readonly enforcePercent: unknown;
  readonly shadowMode: unknown;
  readonly onUnmatched: unknown;
}

/** Returns a generator of numbers that is determined by the seed (mulberry32). */
export function seededChance(seed: number): Chance {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Returns a policy file that behaves as `file` does. `chance` determines its spelling. */
export function respelled(file: Json, chance: Chance): Json {
  const often = (): boolean => chance(3) > 0;
  const inherited: Inherited = {
    file,
    phase: file['phase'] ?? 'active',
    algorithm: (file['algorithm'] ?? 'fixed_window') as string,
    enforcePercent: file['enforce_percent'] ?? 100,
    shadowMode: false,
    onUnmatched: file['on_unmatched'] ?? 'warn',
  };
  const written: Record<string, unknown> = { ...file };
  if (often()) written['phase'] ??= 'active';
  if (often()) written['algorithm'] ??= 'fixed_window';
  if (often()) written['on_store_failure'] ??= 'error';
  if (often()) written['on_unmatched'] ??= 'warn';
  if (often()) written['enforce_percent'] ??= 100;
  if (often()) written['derive'] ??= [];
  if (written['derive'] !== undefined) {
    written['derive'] = (written['derive'] as readonly Json[]).map((item) => deriveItem(item, chance));
  }
  respellAnswers(written, chance);
  if (written['phase'] !== undefined) written['phase'] = phase(written['phase'], chance);
  written['descriptors'] = nodes(file['descriptors'], inherited, chance);
  return shuffledKeys(written, chance) as Json;
}

function nodes(list: unknown, above: Inherited, chance: Chance): readonly Json[] {
  const found = ((list ?? []) as readonly Json[]).map((one) => node(one, above, chance));
  return reordered(found, chance);
}

/**
 * Reorders a list. The order of patterns and regular expressions among themselves matters; the positions of other items
 * do not.
 */
function reordered(list: readonly Json[], chance: Chance): readonly Json[] {
  const isOrdered = ({ value, value_regex: regex }: Json): boolean =>
    regex !== undefined || (typeof value === 'string' && value.includes('*'));
  const mixed = list.filter((one) => !isOrdered(one));
  for (const one of list.filter(isOrdered)) {
    const last = mixed.findLastIndex(isOrdered);
    mixed.splice(last + 1 + chance(mixed.length - last), 0, one);
  }
  const free = shuffled(
    mixed.filter((one) => !isOrdered(one)),
    chance,
  );
  return mixed.map((one) => (isOrdered(one) ? one : (free.pop() as Json)));
}

function node(json: Json, above: Inherited, chance: Chance): Json {
  const often = (): boolean => chance(3) > 0;
  const isLimited = json['rate_limit'] !== undefined || json['rate_limits'] !== undefined;
  const inherited: Inherited = {
    ...above,
    phase: json['phase'] ?? above.phase,
    enforcePercent: json['enforce_percent'] ?? above.enforcePercent,
    shadowMode: json['shadow_mode'] ?? false,
    onUnmatched: json['on_unmatched'] ?? above.onUnmatched,
  };
  const written: Record<string, unknown> = { ...json };
  if (often()) written['phase'] ??= inherited.phase;
  if (often()) written['on_unmatched'] ??= inherited.onUnmatched;
  for (const key of ['shadow_mode', 'quota_mode', 'detailed_metric', 'value_to_metric', 'share_threshold']) {
    if (often()) written[key] ??= chance(2) > 0 ? false : null;
  }
  if (isLimited && often()) written['enforce_percent'] ??= inherited.enforcePercent;
  if (written['phase'] !== undefined) written['phase'] = phase(written['phase'], chance);
  if (json['value_cidr'] !== undefined) written['value_cidr'] = items(json['value_cidr'], chance, block);
  if (json['value_regex'] !== undefined) written['value_regex'] = items(json['value_regex'], chance);
  if (json['value'] === undefined && json['value_cidr'] === undefined && json['value_regex'] === undefined) {
    if (often()) written['value'] = '';
  }
  if (json['rate_limit'] !== undefined)
    written['rate_limit'] = limit(json['rate_limit'] as Json, above, chance);
  if (json['rate_limits'] !== undefined) {
    written['rate_limits'] = (json['rate_limits'] as readonly Json[]).map((item) =>
      listItem(item, inherited, chance),
    );
  }
  written['descriptors'] = nodes(json['descriptors'], inherited, chance);
  return written;
}

function listItem(json: Json, inherited: Inherited, chance: Chance): Json {
  const written = limit(json, inherited, chance);
  if (chance(2) > 0) written['phase'] ??= inherited.phase;
  if (chance(2) > 0) written['shadow_mode'] ??= inherited.shadowMode;
  if (chance(2) > 0) written['enforce_percent'] ??= inherited.enforcePercent;
  if (written['phase'] !== undefined) written['phase'] = phase(written['phase'], chance);
  // The last limit of a chain decides for the others.
  const ofLast = ['phase', 'shadow_mode', 'enforce_percent', 'on_store_failure'];
  if (written['then'] !== undefined) for (const key of ofLast) delete written[key];
  return written;
}

function limit(json: Json, inherited: Inherited, chance: Chance): Record<string, unknown> {
  const often = (): boolean => chance(3) > 0;
  if (json['unlimited'] === true) return { ...json };
  const { name, replaces, on_store_failure: failure, denied_response, ...rest } = json;
  const { response_headers, request_headers, on_over, ...own } = rest;
  const { phase: when, shadow_mode: shadow, enforce_percent: percent, then: nextLimit, ...how } = own;
  const written: Record<string, unknown> = { ...json };
  for (const key of Object.keys(how)) delete written[key];
  Object.assign(written, rate(how, inherited, chance));
  if (often()) written['on_store_failure'] ??= inherited.file['on_store_failure'] ?? 'error';
  for (const key of ['response_headers', 'request_headers', 'denied_response']) {
    if (often() && inherited.file[key] !== undefined) written[key] ??= inherited.file[key];
  }
  if (written['replaces'] !== undefined) {
    const names = written['replaces'] as readonly unknown[];
    written['replaces'] = shuffled([...names, ...names], chance);
  }
  respellAnswers(written, chance);
  return written;
}

const SECONDS: readonly (readonly [string, number])[] = [
  ['second', 1],
  ['minute', 60],
  ['hour', 3600],
  ['day', 86_400],
  ['week', 604_800],
  ['month', 2_592_000],
  ['year', 31_536_000],
];

function rate(json: Json, inherited: Inherited, chance: Chance): Json {
  const often = (): boolean => chance(3) > 0;
  if (json['concurrency'] !== undefined) {
    return { concurrency: withExpiry(json['concurrency'] as Json, '1m', chance) };
  }
  const debt: Record<string, unknown> = {};
  const number = Number(json['requests_per_unit']);
  const bucket = json['token_bucket'] as Json | undefined;
  const capacity = Number(bucket?.['max_tokens'] ?? json['burst'] ?? number);
  if (json['hold'] !== undefined) {
    const hold = withExpiry(json['hold'] as Json, '10m', chance);
    if (often()) hold['unknown'] ??= 'keep';
    Object.assign(debt, { hold, max_debt: json['max_debt'] ?? (often() ? capacity : undefined) });
  } else if (json['allow_debt'] === true) {
    Object.assign(debt, { allow_debt: true, max_debt: json['max_debt'] ?? (often() ? capacity : undefined) });
  } else if (often()) debt['allow_debt'] = false;
  const given = Object.fromEntries(Object.entries(debt).filter(([, value]) => value !== undefined));
  if (bucket !== undefined) {
    const fill = Number(bucket['tokens_per_fill'] ?? 1);
    return { ...tokenBucket(capacity, fill, nanosOf(bucket['fill_interval'] as string), chance), ...given };
  }
  const calendar = json['calendar'] as string | undefined;
  const isDayOfUtc = json['unit'] === 'day' && json['unit_multiplier'] === undefined;
  if (calendar !== undefined) {
    const algorithm = often() ? { algorithm: 'fixed_window' } : {};
    return { ...json, ...algorithm, ...given };
  }
  const algorithm = (json['algorithm'] ?? inherited.algorithm) as string;
  const [, unit] = SECONDS.find(([name]) => name === json['unit']) as readonly [string, number];
  const seconds = unit * Number(json['unit_multiplier'] ?? 1);
  if (algorithm === 'token_bucket' && number > 0) {
    if (often()) return { ...tokenBucket(capacity, number, seconds * 1e9, chance), ...given };
    const burst = json['burst'] !== undefined || often() ? { burst: capacity } : {};
    return { ...window(seconds, number, chance), algorithm, ...burst, ...given };
  }
  if (isDayOfUtc && chance(4) === 0) {
    return { unit: 'day', requests_per_unit: number, calendar: 'UTC', ...given };
  }
  const stated = often() || json['algorithm'] !== undefined ? { algorithm } : {};
  return { ...window(seconds, number, chance), ...stated, ...given };
}

/** Returns a limit on concurrent requests, or a hold, with its expiry in any units of time, or without the default. */
function withExpiry(json: Json, standard: string, chance: Chance): Record<string, unknown> {
  const { expires_after: given, ...rest } = json;
  if (given === undefined && chance(2) > 0) return { ...rest };
  return { ...rest, expires_after: durationText(nanosOf((given ?? standard) as string), chance) };
}

/** Returns a window in any units that fit, with names in any case. */
function window(seconds: number, number: number, chance: Chance): Json {
  const fitting = SECONDS.filter(([, length]) => seconds % length === 0);
  const [name, length] = fitting[chance(fitting.length)] as readonly [string, number];
  const multiplier = seconds / length;
  const unit = chance(4) === 0 ? name.toUpperCase() : name;
  const factor = multiplier > 1 || chance(2) > 0 ? { unit_multiplier: multiplier } : {};
  return { unit, requests_per_unit: number, ...factor };
}

/** Returns a token bucket with tokens and interval multiplied by the same factor, in any units of time. */
function tokenBucket(maxTokens: number, fill: number, nanos: number, chance: Chance): Json {
  const factor = 1 + chance(3);
  const perFill = fill * factor === 1 && chance(2) > 0 ? {} : { tokens_per_fill: fill * factor };
  return {
    token_bucket: { max_tokens: maxTokens, ...perFill, fill_interval: durationText(nanos * factor, chance) },
  };
}

const NANOS: readonly (readonly [string, number])[] = [
  ['h', 3600e9],
  ['m', 60e9],
  ['s', 1e9],
  ['ms', 1e6],
];

function nanosOf(text: string): number {
  const [, count = '', name = ''] = /^(\d+)(\D+)$/.exec(text) ?? [];
  return Number(count) * (NANOS.find(([unit]) => unit === name)?.[1] as number);
}

function durationText(nanos: number, chance: Chance): string {
  const fitting = NANOS.filter(([, length]) => nanos % length === 0);
  const [name, length] = fitting[chance(fitting.length)] as readonly [string, number];
  return `${nanos / length}${name}`;
}

/**
 * Respells a phase. Past phases have no effect, nor do phases that another one hides. The time of the tests is between
 * 2025 and 2027.
 */
function phase(value: unknown, chance: Chance): unknown {
  const past = ['1999-12-31T23:59:59Z', '2025-01-01T00:00:00+01:00'][chance(2)];
  if (value === 'active' && chance(3) === 0) {
    return chance(2) > 0 ? { active: past } : { grace_period: past, active: past };
  }
  if (value === 'grace_period' && chance(3) === 0) return { grace_period: past };
  if (typeof value !== 'object' || value === null) return value;
  const { grace_period: grace, active } = value as Json;
  if (typeof active === 'string' && Date.parse(active) < Date.UTC(2026, 5, 1)) {
    return chance(2) > 0 ? 'active' : { grace_period: active, active };
  }
  if (grace === undefined && chance(2) > 0) return { grace_period: active, active };
  return value;
}

function respellAnswers(written: Record<string, unknown>, chance: Chance): void {
  for (const key of ['response_headers', 'request_headers']) {
    const headers = written[key] as readonly string[] | undefined;
    if (headers !== undefined) written[key] = shuffled([...headers, ...headers], chance);
  }
  const denied = written['denied_response'] as Json | string | undefined;
  if (typeof denied === 'object' && denied['body'] === '' && chance(2) > 0) {
    written['denied_response'] = { body: '', content_type: 'text/html' };
  }
}

/** Respells an item of `derive`. Conditions are identified by their sources, so their order does not matter. */
function deriveItem(item: Json, chance: Chance): Json {
  return { ...item, from: shuffled(item['from'] as readonly unknown[], chance) };
}

/** Respells a text or a list. The first item names the node; the order of the others does not matter. */
function items(value: unknown, chance: Chance, respell = (text: string, _: Chance) => text): unknown {
  const [first, ...others] = (Array.isArray(value) ? value : [value]) as readonly string[];
  const list = [first as string, ...shuffled(others, chance)].map((one) => respell(one, chance));
  return list.length === 1 && chance(2) > 0 ? list[0] : list;
}

function block(text: string, chance: Chance): string {
  const others: Readonly<Record<string, string>> = { '2001:db8::/32': '2001:0DB8:0:0::/32' };
  return chance(2) > 0 ? (others[text] ?? text) : text;
}

function shuffled<T>(list: readonly T[], chance: Chance): T[] {
  const left = [...list];
  const mixed: T[] = [];
  while (left.length > 0) mixed.push(...left.splice(chance(left.length), 1));
  return mixed;
}

/** Shuffles the keys of mappings, which have no order, and keeps the order of lists. */
function shuffledKeys(value: unknown, chance: Chance): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffledKeys(item, chance));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    shuffled(Object.entries(value), chance).map(([key, item]) => [key, shuffledKeys(item, chance)]),
  );
}
