import type { FieldReader } from '../../config/yaml/field-reader.js';
import type { ActionContext } from './actions/action.js';
import type { LogFields, Predicate } from './log-fields.js';
import { type CompiledRateLimit, compileRateLimits } from './rate-limit.js';
import { typedConfig } from './read/typed-config.js';

const RATE_LIMIT = 'envoy.extensions.filters.http.ratelimit.v3.RateLimit';
const RATE_LIMIT_PER_ROUTE = `${RATE_LIMIT}PerRoute`;
const FILTER_CONFIG = 'envoy.config.route.v3.FilterConfig';

/** A rate limit filter of an HTTP connection manager. */
export interface RateLimitFilter {
  /** Name of the filter, which is the key of its configuration in `typed_per_filter_config`. */
  readonly name: string;
  readonly domain: string;
  readonly stage: number;
  /** Whether the filter is off unless a route enables it. */
  readonly isDisabled: boolean;
  /** Whether `request_type` includes a request. */
  readonly includes: Predicate;
  /** If not empty, the limits of routes and virtual hosts do not apply. */
  readonly rateLimits: readonly CompiledRateLimit[];
}

/** The configuration of one filter for a route, a virtual host or all routes. */
export interface PerRoute {
  readonly isDisabled: boolean;
  readonly domain: string | undefined;
  /** If not empty, the limits of the filter, of routes and of virtual hosts do not apply. */
  readonly rateLimits: readonly CompiledRateLimit[];
  readonly virtualHostLimits: VirtualHostLimits;
}

/**
 * Whether the limits of the virtual host apply: only without limits of the route (`override`), always, or never
 * (RateLimitPerRoute.VhRateLimitsOptions).
 */
export type VirtualHostLimits = 'override' | 'include' | 'ignore';

/** The configurations of a level by the name of the filter. */
export type PerFilterConfig = ReadonlyMap<string, PerRoute>;

/** Reads an item of `http_filters`. Returns undefined if it is not a rate limit filter. */
export function readRateLimitFilter(
  reader: FieldReader,
  context: ActionContext,
): RateLimitFilter | undefined {
  const config = typedConfig(reader, 'typed_config');
  if (config?.type !== RATE_LIMIT) return undefined;
  const { fields } = config;
  const domain = fields.text('domain');
  if (domain === undefined)
    fields.problems.error(fields.map.at, fields.path, '"domain" is missing; write the domain of the policy');
  for (const key of ['filter_enabled', 'filter_enforced'])
    if (fields.has(key)) fields.warn(key, `the replay ignores "${key}", and assumes 100 percent`);
  return {
    name: reader.text('name') ?? '',
    domain: domain ?? '',
    stage: fields.integer('stage', 0, 10) ?? 0,
    isDisabled: reader.boolean('disabled') === true,
    includes: requestType(fields, context.log),
    rateLimits: compileRateLimits(fields, 'filter', context),
  };
}

/** Reads `request_type`. Envoy marks internal requests with a header. */
function requestType(fields: FieldReader, log: LogFields): Predicate {
  const type = fields.choice('request_type', ['both', 'internal', 'external', '']) || 'both';
  if (type === 'both') return () => true;
  const internal = log.header('x-envoy-internal', 'start', { reader: fields, user: 'request_type' });
  return (values) => (internal(values) === 'true') === (type === 'internal');
}

/** Reads `typed_per_filter_config` of a route, a virtual host or a route configuration. */
export function readPerFilterConfig(reader: FieldReader, context: ActionContext): PerFilterConfig {
  const found = new Map<string, PerRoute>();
  const configs = reader.mapping('typed_per_filter_config');
  for (const name of configs?.map.fields.keys() ?? []) {
    const perRoute = readPerRoute(configs as FieldReader, name, context);
    if (perRoute !== undefined) found.set(name, perRoute);
  }
  return found;
}

function readPerRoute(reader: FieldReader, key: string, context: ActionContext): PerRoute | undefined {
  const config = typedConfig(reader, key);
  if (config?.type === FILTER_CONFIG) {
    const inner = readPerRoute(config.fields, 'config', context);
    const isDisabled = config.fields.boolean('disabled') === true;
    return { ...(inner ?? NO_PER_ROUTE), isDisabled };
  }
  if (config?.type !== RATE_LIMIT_PER_ROUTE) return undefined;
  const { fields } = config;
  return {
    isDisabled: false,
    domain: fields.text('domain') || undefined,
    rateLimits: compileRateLimits(fields, 'filter', context),
    virtualHostLimits: readVirtualHostLimits(fields),
  };
}

const NO_PER_ROUTE: PerRoute = {
  isDisabled: false,
  domain: undefined,
  rateLimits: [],
  virtualHostLimits: 'override',
};

/** Envoy 1.40 does not implement `override_option`. */
function readVirtualHostLimits(fields: FieldReader): VirtualHostLimits {
  const limits = fields.choice('vh_rate_limits', ['OVERRIDE', 'INCLUDE', 'IGNORE']) ?? 'OVERRIDE';
  return limits === 'INCLUDE' ? 'include' : limits === 'IGNORE' ? 'ignore' : 'override';
}
