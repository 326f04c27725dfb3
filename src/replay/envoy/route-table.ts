import type { Descriptor } from '../../codec/messages.js';
import type { LineValues } from '../log/log-format.js';
import type { RouteFacts } from './actions/action.js';
import type { LogValue, Predicate } from './log-fields.js';
import type { CompiledRateLimit, LoggedDescriptor } from './rate-limit.js';
import type { PerFilterConfig, RateLimitFilter } from './rate-limit-filter.js';
import type { VirtualHosts } from './virtual-hosts.js';

/**
 * The calls of one rate limit filter for a request. A filter that denies the request still makes its call at the end,
 * and later filters make no calls.
 */
export interface RequestCalls {
  readonly domain: string;
  /** Descriptors of the call at the start; empty if Envoy makes no call. */
  readonly start: readonly Descriptor[];
  /** Descriptors of the call when the stream is done; empty if Envoy makes no call. */
  readonly end: readonly LoggedDescriptor[];
}

/** Returns the calls for a logged request, in the order of the filters; undefined if the route is unknown. */
export type FindCalls = (values: LineValues) => readonly RequestCalls[] | undefined;

/** Rate limits of a route or of its virtual host. */
export interface Level {
  readonly rateLimits: readonly CompiledRateLimit[];
  readonly perFilter: PerFilterConfig;
}

export interface Route extends Level {
  readonly name: string | undefined;
  readonly matches: Predicate;
  /** Whether the route forwards requests. Filters make no calls for redirects and direct responses. */
  readonly forwards: boolean;
  /** RouteAction.include_vh_rate_limits. */
  readonly includesVirtualHost: boolean;
  readonly facts: RouteFacts;
}

export interface VirtualHost extends Level {
  readonly routes: readonly Route[];
}

export interface RouteTable {
  readonly virtualHosts: VirtualHosts<VirtualHost>;
  /** `typed_per_filter_config` of the route configuration. */
  readonly perFilter: PerFilterConfig;
  readonly routeName: LogValue;
}

/** Returns the calls that the filters make for a request by its route. */
export function callsByRoute(filters: readonly RateLimitFilter[], table: RouteTable): FindCalls {
  return (values) => {
    const host = table.virtualHosts.find(values);
    const route = host === undefined ? undefined : findRoute(host, table.routeName(values), values);
    if (host === undefined || route === undefined) return undefined;
    const calls: RequestCalls[] = [];
    if (!route.forwards) return calls;
    for (const filter of filters) {
      const found = callsOf(filter, route, host, table, values);
      if (found !== undefined) calls.push(found);
    }
    return calls;
  };
}

/** Returns the route with the logged name, or else the first route that matches. */
function findRoute(host: VirtualHost, name: string | undefined, values: LineValues): Route | undefined {
  const named = name === undefined ? [] : host.routes.filter((route) => route.name === name);
  if (named.length === 1) return named[0];
  return (named.length > 1 ? named : host.routes).find((route) => route.matches(values));
}

function callsOf(
  filter: RateLimitFilter,
  route: Route,
  host: VirtualHost,
  table: RouteTable,
  values: LineValues,
): RequestCalls | undefined {
  const { name } = filter;
  const perRoute = route.perFilter.get(name) ?? host.perFilter.get(name) ?? table.perFilter.get(name);
  if (perRoute?.isDisabled ?? filter.isDisabled) return undefined;
  if (!filter.includes(values)) return undefined;
  const rateLimits = applicable(filter, perRoute, route, host);
  const start: LoggedDescriptor[] = [];
  const end: LoggedDescriptor[] = [];
  for (const rateLimit of rateLimits) {
    const descriptor = rateLimit.descriptor(values, route.facts);
    if (descriptor !== undefined) (rateLimit.applyOnStreamDone ? end : start).push(descriptor);
  }
  if (start.length === 0 && end.length === 0) return undefined;
  return { domain: perRoute?.domain ?? filter.domain, start, end };
}

/** Returns the rate limits that a filter applies: RateLimitPerRoute, the filter, or the route with its virtual host. */
function applicable(
  filter: RateLimitFilter,
  perRoute: ReturnType<PerFilterConfig['get']>,
  route: Route,
  host: VirtualHost,
): readonly CompiledRateLimit[] {
  if (perRoute !== undefined && perRoute.rateLimits.length > 0) return perRoute.rateLimits;
  if (filter.rateLimits.length > 0) return filter.rateLimits;
  const option = route.includesVirtualHost ? 'include' : (perRoute?.virtualHostLimits ?? 'override');
  const withHost = option === 'include' || (option === 'override' && route.rateLimits.length === 0);
  const all = withHost ? [...route.rateLimits, ...host.rateLimits] : route.rateLimits;
  return all.filter(({ stage }) => stage === filter.stage);
}
