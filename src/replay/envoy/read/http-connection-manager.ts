import type { FieldReader } from '../../../config/yaml/field-reader.js';
import type { LineValues, LogFormat } from '../../log/log-format.js';
import type { LogFields, Predicate } from '../log-fields.js';
import { readRateLimitFilter } from '../rate-limit-filter.js';
import { knowsClusters, readRouteConfig } from '../route-config.js';
import { callsByRoute, type FindCalls } from '../route-table.js';
import { readAccessLogs } from './access-log.js';
import { typedConfig } from './typed-config.js';

export const HTTP_CONNECTION_MANAGER =
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const RATE_LIMIT = /\.filters\.http\.ratelimit\.v3\.RateLimit$/;

/** RESPONSE_CODE_DETAILS of a request that a filter rejected, by the message of the filter. */
const REJECTIONS: readonly (readonly [filter: RegExp, details: RegExp])[] = [
  [/\.ext_authz\.v3\.ExtAuthz$/, /^ext_authz_/],
  [/\.jwt_authn\.v3\.JwtAuthentication$/, /^jwt_authn_access_denied/],
  [/\.rbac\.v3\.RBAC$/, /^rbac_access_denied/],
  [/\.basic_auth\.v3\.BasicAuth$/, /_for_basic_auth$/],
  [/\.api_key_auth\.v3\.ApiKeyAuth$/, /^(?:missing|unknown)_api_key/],
  [/\.local_ratelimit\.v3\.LocalRateLimit$/, /^local_rate_limited/],
  [/\.fault\.v3\.HTTPFault$/, /^fault_filter_abort/],
  [/\.csrf\.v3\.CsrfPolicy$/, /^csrf_origin_mismatch/],
];

/** The configuration that all connection managers share. */
export interface ManagerContext {
  readonly log: LogFields;
  readonly localCluster: string | undefined;
  /** Route configurations of a config dump by name. */
  readonly routeConfigs: ReadonlyMap<string, FieldReader>;
}

/** A connection manager with rate limits. */
export interface Manager {
  readonly find: FindCalls;
  readonly formats: readonly LogFormat[];
}

/** Reads HttpConnectionManager. Returns undefined if it has no rate limit filter. */
export function readManager(fields: FieldReader, context: ManagerContext): Manager | undefined {
  const { log, localCluster } = context;
  const items = fields.mappings('http_filters', 'HTTP filters', 'name');
  const types = items.map((item) => typedConfig(item, 'typed_config')?.type ?? '');
  if (!types.some((type) => RATE_LIMIT.test(type))) return undefined;
  const routes = routeConfig(fields, context);
  if (routes === undefined) return undefined;
  const actions = { log, localCluster, knowsClusters: knowsClusters(routes.map), knowsMetadata: true };
  const filters = items.flatMap((item, i) => {
    const filter = readRateLimitFilter(item, actions);
    if (filter === undefined) return [];
    const arrives = passesFilters(types.slice(0, i), item, log);
    return [{ ...filter, includes: (values: LineValues) => arrives(values) && filter.includes(values) }];
  });
  return {
    find: callsByRoute(filters, readRouteConfig(routes, actions)),
    formats: readAccessLogs(fields),
  };
}

function routeConfig(fields: FieldReader, { routeConfigs }: ManagerContext): FieldReader | undefined {
  const inline = fields.mapping('route_config');
  if (inline !== undefined) return inline;
  const name = fields.mapping('rds')?.text('route_config_name');
  const found = name === undefined ? undefined : routeConfigs.get(name);
  if (found === undefined) {
    const wanted = name === undefined ? 'the routes' : `the route configuration "${name.slice(0, 60)}"`;
    fields.problems.error(
      fields.map.at,
      fields.path,
      `${wanted} of this connection manager cannot be found; pass the output of /config_dump on Envoy's admin port`,
    );
  }
  return found;
}

/** Returns whether a request arrives at a filter after filters with these messages. */
function passesFilters(types: readonly string[], reader: FieldReader, log: LogFields): Predicate {
  const rejections = REJECTIONS.filter(([filter]) => types.some((type) => filter.test(type)));
  if (rejections.length === 0) return () => true;
  const details = log.value(['RESPONSE_CODE_DETAILS'], { reader, user: 'http_filters', optional: true });
  return (values) => {
    const text = details(values);
    return text === undefined || !rejections.some(([, rejected]) => rejected.test(text));
  };
}
