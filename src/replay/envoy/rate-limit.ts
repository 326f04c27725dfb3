import {
  type Descriptor,
  type DescriptorEntry,
  LIMIT_UNIT,
  type RateLimitOverride,
} from '../../codec/messages.js';
import type { FieldReader } from '../../config/yaml/field-reader.js';
import { parseFormatString } from '../log/format-string.js';
import type { LineValues } from '../log/log-format.js';
import type { Action, ActionContext, RouteFacts } from './actions/action.js';
import { compileAction } from './actions/actions.js';
import { type MetadataPath, metadataPath } from './actions/metadata-action.js';
import type { LogValue, When } from './log-fields.js';

/** A descriptor that Envoy sends for a logged request. */
export interface LoggedDescriptor extends Descriptor {
  /**
   * Index of the entry for the hold token that weir returned at the start, whose value is empty. Without a token, Envoy
   * sends no descriptor.
   */
  readonly holdEntry: number | undefined;
}

/** An item of `rate_limits`: envoy.config.route.v3.RateLimit. */
export interface CompiledRateLimit {
  readonly stage: number;
  readonly applyOnStreamDone: boolean;
  /** Returns the descriptor for a request; undefined if Envoy sends none. */
  descriptor(values: LineValues, route: RouteFacts): LoggedDescriptor | undefined;
}

/**
 * The place of `rate_limits`. Envoy 1.40 ignores `hits_addend` in routes and virtual hosts, and rejects `stage` and
 * `disable_key` in the filter and in RateLimitPerRoute.
 */
export type Place = 'route' | 'filter';

const KEYS = [
  ...[
    'stage',
    'disable_key',
    'actions',
    'limit',
    'hits_addend',
    'apply_on_stream_done',
    'x_ratelimit_option',
  ],
];
/** Envoy sends no descriptor for a larger number of hits. */
const MAX_HITS = 1_000_000_000;

/** Compiles the list `rate_limits` of a message. */
export function compileRateLimits(
  reader: FieldReader,
  place: Place,
  context: ActionContext,
): readonly CompiledRateLimit[] {
  return reader
    .mappings('rate_limits', 'rate limits', 'actions')
    .flatMap((each) => compileRateLimit(each, place, context) ?? []);
}

/** Compiles envoy.config.route.v3.RateLimit. Reports problems and returns undefined. */
export function compileRateLimit(
  reader: FieldReader,
  place: Place,
  context: ActionContext,
): CompiledRateLimit | undefined {
  reader.expectKeys(KEYS);
  const applyOnStreamDone = reader.boolean('apply_on_stream_done') === true;
  const when: When = applyOnStreamDone ? 'end' : 'start';
  const items = reader.mappings('actions', 'actions');
  const actions = items.flatMap((each) => compileAction(each, context, when) ?? []);
  if (!reader.has('actions'))
    reader.problems.error(reader.map.at, reader.path, '"actions" is missing; write a list of actions');
  const hits = readHits(reader, place, context);
  const limit = readLimit(reader, context);
  const stage = readStage(reader, place);
  // A list with an action that cannot be replayed would yield another descriptor.
  if (actions.length === 0 || actions.length < items.length) return undefined;
  return {
    stage,
    applyOnStreamDone,
    descriptor: (values, route) => {
      const number = hits.number(values);
      if (number === null) return undefined;
      const found = entriesOf(actions, values, route);
      if (found === undefined) return undefined;
      return {
        entries: found.entries,
        limit: limit(values),
        hitsAddend: number,
        isNegativeHits: hits.isNegative,
        holdEntry: found.holdEntry,
      };
    },
  };
}

function entriesOf(
  actions: readonly Action[],
  values: LineValues,
  route: RouteFacts,
): { readonly entries: readonly DescriptorEntry[]; readonly holdEntry: number | undefined } | undefined {
  // An array that grows by push() reserves room for many more entries.
  const entries = new Array<DescriptorEntry>(actions.length);
  let count = 0;
  let holdEntry: number | undefined;
  for (const action of actions) {
    const entry = action.entry(values, route);
    if (entry === undefined) return undefined;
    if (entry === null) continue;
    if (action.isHoldToken === true) holdEntry = count;
    entries[count++] = entry;
  }
  if (count < entries.length) entries.length = count;
  return { entries, holdEntry };
}

function readStage(reader: FieldReader, place: Place): number {
  if (place === 'route') return reader.integer('stage', 0, 10) ?? 0;
  for (const key of ['stage', 'disable_key'])
    if (reader.has(key))
      reader.error(key, `Envoy rejects "${key}" here; remove it, or move the rate limit to the route`);
  return 0;
}

/** Returns the number of hits, undefined without `hits_addend`, and null if Envoy sends no descriptor. */
type HitsNumber = (values: LineValues) => number | undefined | null;

/** Reads envoy.config.route.v3.RateLimit.HitsAddend. */
function readHits(
  reader: FieldReader,
  place: Place,
  { log }: ActionContext,
): { readonly number: HitsNumber; readonly isNegative: boolean } {
  const none = { number: () => undefined, isNegative: false };
  const fields = reader.mapping('hits_addend');
  if (fields === undefined) return none;
  if (place === 'route') {
    reader.warn(
      'hits_addend',
      'Envoy 1.40 ignores "hits_addend" here; to count other hits, move the rate limit to typed_per_filter_config',
    );
    return none;
  }
  fields.expectKeys(['number', 'format', 'is_negative_hits']);
  const isNegative = fields.boolean('is_negative_hits') === true;
  const format = fields.text('format') ?? '';
  if (format === '') {
    const number = fields.integer('number', 0, MAX_HITS);
    return { number: () => number, isNegative };
  }
  const [part, ...others] = parseFormatString(format);
  if (part === undefined || others.length > 0 || !('operators' in part)) {
    fields.error(
      'format',
      'Envoy rejects a format with other than one operator; write one, such as "%BYTES_SENT%"',
    );
    return none;
  }
  const value = log.value(part.operators, { reader: fields, user: 'hits_addend' }, format);
  return { number: (values) => hitsOf(value(values)), isNegative };
}

function hitsOf(text: string | undefined): number | null {
  if (text === undefined || !/^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i.test(text)) return null;
  const number = Number(text);
  return number >= 0 && number <= MAX_HITS ? Math.floor(number) : null;
}

/** Reads envoy.config.route.v3.RateLimit.Override. Without valid metadata, Envoy sends no limit. */
function readLimit(
  reader: FieldReader,
  { log }: ActionContext,
): (values: LineValues) => RateLimitOverride | undefined {
  const fields = reader.mapping('limit');
  const none = () => undefined;
  if (fields === undefined) return none;
  fields.expectKeys(['dynamic_metadata', 'rate_limit']);
  const fixed = fields.mapping('rate_limit');
  if (fixed !== undefined) {
    const limit = overrideOf(fixed.text('requests_per_unit'), fixed.text('unit'));
    return () => limit;
  }
  const dynamic = fields.mapping('dynamic_metadata');
  const path: MetadataPath | undefined =
    dynamic === undefined ? undefined : metadataPath(dynamic, 'metadata_key');
  if (path === undefined) return none;
  const member = (name: string): LogValue =>
    log.value([`DYNAMIC_METADATA(${[...path, name].join(':')})`], {
      reader: fields,
      user: 'limit',
      optional: true,
    });
  const [requests, unit] = [member('requests_per_unit'), member('unit')];
  return (values) => overrideOf(requests(values), unit(values));
}

function overrideOf(requests: string | undefined, unit: string | undefined): RateLimitOverride | undefined {
  const name = (unit ?? '').toLowerCase();
  if (requests === undefined || !Object.hasOwn(LIMIT_UNIT, name)) return undefined;
  const requestsPerUnit = Math.floor(Number(requests));
  return requestsPerUnit >= 0
    ? { requestsPerUnit, unit: LIMIT_UNIT[name as keyof typeof LIMIT_UNIT] }
    : undefined;
}
