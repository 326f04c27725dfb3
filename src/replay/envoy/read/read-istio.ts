import { itemsAt, type Manifest, textAt, valueAt } from '../../../config/manifests/manifest.js';
import type { ProblemList } from '../../../config/yaml/config-problem.js';
import { FieldReader } from '../../../config/yaml/field-reader.js';
import { joinPath, type YamlMap, type YamlValue } from '../../../config/yaml/yaml-document.js';
import type { LogFormat } from '../../log/log-format.js';
import type { ActionContext } from '../actions/action.js';
import { type LogFields, ROUTE_NAME } from '../log-fields.js';
import { compileRateLimits } from '../rate-limit.js';
import {
  type PerFilterConfig,
  type RateLimitFilter,
  readPerFilterConfig,
  readRateLimitFilter,
} from '../rate-limit-filter.js';
import { callsByRoute, type Level, type Route, type VirtualHost } from '../route-table.js';
import { VirtualHosts } from '../virtual-hosts.js';
import { readAccessLogs } from './access-log.js';
import type { Manager } from './http-connection-manager.js';
import { withProtoNames } from './proto-names.js';
import { typedConfig } from './typed-config.js';

/** A file with its EnvoyFilter resources. */
export interface IstioSource {
  readonly manifest: Manifest;
  readonly problems: ProblemList;
}

/** A patch of a virtual host or a route, and the names that it selects; '' selects all. */
interface Patch extends Level {
  readonly host: string;
  readonly route: string;
  readonly includesVirtualHost: boolean;
}

/** The patches of all EnvoyFilter resources. */
class Patches {
  readonly filters: RateLimitFilter[] = [];
  readonly hosts: Patch[] = [];
  readonly routes: Patch[] = [];
  readonly formats: LogFormat[] = [];
  perFilter: PerFilterConfig = new Map();
  private readonly context: ActionContext;

  constructor(context: ActionContext) {
    this.context = context;
  }

  /** Reads an item of `configPatches` (networking.istio.io/v1alpha3, EnvoyConfigObjectPatch). */
  add(patch: YamlValue, path: string, problems: ProblemList): void {
    const value = valueAt(patch, 'patch', 'value');
    const operation = textAt(patch, 'patch', 'operation');
    if (value?.kind !== 'map' || operation === 'REMOVE') return;
    const fields = new FieldReader(withProtoNames(value) as YamlMap, `${path}.patch.value`, problems);
    const host = textAt(patch, 'match', 'routeConfiguration', 'vhost', 'name');
    const route = textAt(patch, 'match', 'routeConfiguration', 'vhost', 'route', 'name');
    switch (textAt(patch, 'applyTo')) {
      case 'HTTP_FILTER': {
        const filter = readRateLimitFilter(fields, this.context);
        if (filter !== undefined) this.filters.push(filter);
        return;
      }
      case 'NETWORK_FILTER': {
        const config = typedConfig(fields, 'typed_config');
        if (config !== undefined) this.formats.push(...readAccessLogs(config.fields));
        return;
      }
      case 'ROUTE_CONFIGURATION':
        this.perFilter = new Map([...this.perFilter, ...readPerFilterConfig(fields, this.context)]);
        return;
      case 'VIRTUAL_HOST':
        this.hosts.push({ host, route: '', includesVirtualHost: false, ...this.level(fields, fields) });
        return;
      case 'HTTP_ROUTE': {
        const action = fields.mapping('route');
        const includesVirtualHost = action?.boolean('include_vh_rate_limits') === true;
        this.routes.push({ host, route, includesVirtualHost, ...this.level(fields, action) });
        return;
      }
    }
  }

  private level(fields: FieldReader, limits: FieldReader | undefined): Level {
    return {
      rateLimits: limits === undefined ? [] : compileRateLimits(limits, 'route', this.context),
      perFilter: readPerFilterConfig(fields, this.context),
    };
  }
}

/**
 * Reads EnvoyFilter resources. Istio applies their patches to routes that the resources do not contain, so a virtual
 * host is found by the host in its name, and a route by its name in the log. Selectors of workloads, gateways and ports
 * are ignored.
 */
export function readIstio(sources: readonly IstioSource[], log: LogFields): Manager {
  const context = { log, localCluster: undefined, knowsClusters: false, knowsMetadata: false };
  const patches = new Patches(context);
  for (const { manifest, problems } of sources)
    itemsAt(manifest.fields, 'spec', 'configPatches').forEach((patch, i) => {
      patches.add(patch, `${joinPath(manifest.path, 'spec')}.configPatches[${i}]`, problems);
    });
  const [first] = sources;
  if (patches.filters.length === 0 && first !== undefined)
    first.problems.error(
      first.manifest.fields.at,
      first.manifest.path,
      'no EnvoyFilter adds a rate limit filter; pass the file with the patch of HTTP_FILTER, too',
    );
  const reader = first === undefined ? undefined : new FieldReader(first.manifest.fields, '', first.problems);
  const names = new Set(patches.routes.map(({ route }) => route));
  const hosts = [...new Set([...patches.hosts, ...patches.routes].map(({ host }) => host))];
  const needsHost = hosts.some((host) => domainOf(host) !== '*');
  const authority =
    needsHost && reader !== undefined
      ? log.header(':authority', 'start', { reader, user: 'vhost.name' })
      : () => undefined;
  const routeName =
    [...names].some((name) => name !== '') && reader !== undefined
      ? log.value([ROUTE_NAME], { reader, user: 'vhost.route.name' })
      : log.optional(ROUTE_NAME);
  const virtualHosts = new VirtualHosts<VirtualHost>(authority, true);
  for (const host of [...hosts, ''])
    virtualHosts.add(domainOf(host), {
      ...merged(patches.hosts, host),
      routes: [...names, ''].map((name) => routeOf(patches.routes, host, name)),
    });
  const table = { virtualHosts, perFilter: patches.perFilter, routeName };
  return { find: callsByRoute(patches.filters, table), formats: patches.formats };
}

/** Returns the domain of a virtual host of Istio: `api.example.com` for `api.example.com:443`. */
function domainOf(name: string): string {
  return name === '' || name.includes('|') ? '*' : name.replace(/:\d+$/, '');
}

function routeOf(patches: readonly Patch[], host: string, name: string): Route {
  const own = patches.filter((patch) => patch.route === '' || patch.route === name);
  return {
    ...merged(own, host),
    name: name === '' ? undefined : name,
    matches: () => name === '',
    forwards: true,
    includesVirtualHost: own.some((patch) => applies(patch, host) && patch.includesVirtualHost),
    facts: {},
  };
}

function applies(patch: Patch, host: string): boolean {
  return patch.host === '' || patch.host === host;
}

/** Merges the patches for a virtual host as protobuf does: lists are joined. */
function merged(patches: readonly Patch[], host: string): Level {
  const own = patches.filter((patch) => applies(patch, host));
  return {
    rateLimits: own.flatMap(({ rateLimits }) => rateLimits),
    perFilter: new Map(own.flatMap(({ perFilter }) => [...perFilter])),
  };
}
