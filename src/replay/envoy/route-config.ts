import { itemsAt, valueAt } from '../../config/manifests/manifest.js';
import type { FieldReader } from '../../config/yaml/field-reader.js';
import type { YamlMap } from '../../config/yaml/yaml-document.js';
import type { ActionContext, RouteFacts } from './actions/action.js';
import { type LogFields, ROUTE_NAME } from './log-fields.js';
import { compileRateLimits } from './rate-limit.js';
import { readPerFilterConfig } from './rate-limit-filter.js';
import { routeMatch } from './route-match.js';
import type { Route, RouteTable, VirtualHost } from './route-table.js';
import { VirtualHosts } from './virtual-hosts.js';

/** Actions of a route that rewrite the path, after which `:path` is not what the filter saw. */
const REWRITES = ['prefix_rewrite', 'regex_rewrite', 'path_rewrite', 'path_rewrite_policy'];

/** Returns whether each route of a route configuration names its cluster, or the header that does. */
export function knowsClusters(config: YamlMap): boolean {
  return itemsAt(config, 'virtual_hosts').every((host) =>
    itemsAt(host, 'routes').every((route) => {
      const action = valueAt(route, 'route');
      return action?.kind !== 'map' || action.fields.has('cluster') || action.fields.has('cluster_header');
    }),
  );
}

/** Reads envoy.config.route.v3.RouteConfiguration. */
export function readRouteConfig(reader: FieldReader, context: ActionContext): RouteTable {
  const { log } = context;
  if (reader.has('vhds'))
    reader.error('vhds', 'virtual hosts of a server are not in this file; pass the output of /config_dump');
  const hosts = reader.mappings('virtual_hosts', 'virtual hosts', 'name');
  const isOnlyAny = hosts.every((host) =>
    host.texts('domains', 'domains').every(({ value }) => value === '*'),
  );
  const authority = isOnlyAny
    ? () => undefined
    : log.header(':authority', 'start', { reader, user: 'virtual_hosts' });
  const virtualHosts = new VirtualHosts<VirtualHost>(
    authority,
    reader.boolean('ignore_port_in_host_matching') === true,
  );
  for (const each of hosts) {
    const host = readVirtualHost(each, context);
    for (const { value } of each.texts('domains', 'domains')) virtualHosts.add(value, host);
  }
  return {
    virtualHosts,
    perFilter: readPerFilterConfig(reader, context),
    routeName: log.optional(ROUTE_NAME),
  };
}

/** Reads envoy.config.route.v3.VirtualHost. */
function readVirtualHost(reader: FieldReader, context: ActionContext): VirtualHost {
  if (reader.has('matcher'))
    reader.error('matcher', 'a matcher of a virtual host cannot be replayed; use "routes" instead');
  const readers = reader.mappings('routes', 'routes', 'match');
  const names = readers.map((route) => route.text('name') || undefined);
  return {
    rateLimits: compileRateLimits(reader, 'route', context),
    perFilter: readPerFilterConfig(reader, context),
    routes: readers.map((route, i) => {
      const name = names[i];
      const isUnique = name !== undefined && names.indexOf(name) === names.lastIndexOf(name);
      return readRoute(route, name, isUnique, context);
    }),
  };
}

/** Reads envoy.config.route.v3.Route. */
function readRoute(
  reader: FieldReader,
  name: string | undefined,
  hasUniqueName: boolean,
  context: ActionContext,
): Route {
  const match = reader.mapping('match');
  const action = reader.mapping('route');
  if (action !== undefined && REWRITES.some((key) => action.has(key)))
    context.log.needOriginalPath({ reader: action, user: 'route' });
  const weighted = action?.mapping('weighted_clusters');
  for (const cluster of weighted?.mappings('clusters', 'clusters', 'name') ?? [])
    if (cluster.has('typed_per_filter_config'))
      cluster.warn(
        'typed_per_filter_config',
        'the replay ignores the filter configuration of weighted clusters',
      );
  return {
    name,
    matches: match === undefined ? () => false : routeMatch(match, context.log, hasUniqueName),
    forwards: action !== undefined,
    includesVirtualHost: action?.boolean('include_vh_rate_limits') === true,
    rateLimits: action === undefined ? [] : compileRateLimits(action, 'route', context),
    perFilter: readPerFilterConfig(reader, context),
    facts: readFacts(reader, action, context.log),
  };
}

function readFacts(reader: FieldReader, action: FieldReader | undefined, log: LogFields): RouteFacts {
  const metadata = valueAt(reader.map, 'metadata', 'filter_metadata');
  const cluster = action?.text('cluster');
  const header = action?.text('cluster_header');
  const fromHeader =
    action !== undefined && header !== undefined
      ? log.header(header, 'start', { reader: action, user: 'cluster_header' })
      : undefined;
  const value = cluster === undefined ? fromHeader : () => cluster;
  return { ...(value !== undefined && { cluster: value }), ...(metadata !== undefined && { metadata }) };
}
