import { itemsAt, textAt, valueAt } from '../../../config/manifests/manifest.js';
import type { ProblemList } from '../../../config/yaml/config-problem.js';
import { FieldReader } from '../../../config/yaml/field-reader.js';
import type { YamlMap, YamlValue } from '../../../config/yaml/yaml-document.js';
import type { LineValues } from '../../log/log-format.js';
import type { LogFields } from '../log-fields.js';
import type { FindCalls } from '../route-table.js';
import { readAccessLogs } from './access-log.js';
import {
  HTTP_CONNECTION_MANAGER,
  type Manager,
  type ManagerContext,
  readManager,
} from './http-connection-manager.js';
import { typedConfig } from './typed-config.js';

/** A connection manager and the port of its listener; undefined for other addresses. */
interface ListeningManager extends Manager {
  readonly port: string | undefined;
}

/** Reads envoy.config.bootstrap.v3.Bootstrap. */
export function readBootstrap(document: YamlMap, log: LogFields, problems: ProblemList): Manager | undefined {
  const listeners = locate(document, '', problems, 'static_resources', 'listeners');
  return readListeners(listeners, { log, localCluster: localCluster(document), routeConfigs: new Map() });
}

/** Reads envoy.admin.v3.ConfigDump, which Envoy's admin port returns for /config_dump. */
export function readConfigDump(
  document: YamlMap,
  log: LogFields,
  problems: ProblemList,
): Manager | undefined {
  const listeners: FieldReader[] = [];
  const routeConfigs = new Map<string, FieldReader>();
  let cluster: string | undefined;
  itemsAt(document, 'configs').forEach((config, i) => {
    const path = `configs[${i}]`;
    cluster ??= localCluster(valueAt(config, 'bootstrap'));
    listeners.push(
      ...locate(config, path, problems, 'static_listeners').flatMap((each) => each.mapping('listener') ?? []),
      ...locate(config, path, problems, 'dynamic_listeners').flatMap(
        (each) => each.mapping('active_state')?.mapping('listener') ?? [],
      ),
    );
    for (const kind of ['static_route_configs', 'dynamic_route_configs'])
      for (const each of locate(config, path, problems, kind)) {
        const routes = each.mapping('route_config');
        if (routes !== undefined) routeConfigs.set(routes.text('name') ?? '', routes);
      }
  });
  return readListeners(listeners, { log, localCluster: cluster, routeConfigs });
}

function localCluster(bootstrap: YamlValue | undefined): string | undefined {
  return textAt(bootstrap, 'node', 'cluster') || undefined;
}

/** Returns readers for the mappings of a list at a path of keys. */
function locate(
  value: YamlValue,
  path: string,
  problems: ProblemList,
  ...keys: readonly string[]
): readonly FieldReader[] {
  const full = [...(path === '' ? [] : [path]), ...keys].join('.');
  return itemsAt(value, ...keys).flatMap((item, i) =>
    item.kind === 'map' ? [new FieldReader(item, `${full}[${i}]`, problems)] : [],
  );
}

function readListeners(listeners: readonly FieldReader[], context: ManagerContext): Manager | undefined {
  const managers = listeners.flatMap((listener) => readListener(listener, context));
  const [first] = managers;
  if (first === undefined) return undefined;
  const formats = managers.flatMap((manager) => manager.formats);
  if (managers.length === 1) return { find: first.find, formats };
  return { find: byPort(managers, listeners[0] as FieldReader, context.log), formats };
}

/** Reads envoy.config.listener.v3.Listener. */
function readListener(listener: FieldReader, context: ManagerContext): readonly ListeningManager[] {
  const port = textAt(listener.map, 'address', 'socket_address', 'port_value') || undefined;
  const last = listener.mapping('default_filter_chain');
  const chains = [
    ...listener.mappings('filter_chains', 'filter chains'),
    ...(last === undefined ? [] : [last]),
  ];
  const formats = readAccessLogs(listener);
  return chains
    .flatMap((chain) => chain.mappings('filters', 'network filters', 'name'))
    .flatMap((filter): readonly ListeningManager[] => {
      const config = typedConfig(filter, 'typed_config');
      if (config?.type !== HTTP_CONNECTION_MANAGER) return [];
      const manager = readManager(config.fields, context);
      return manager === undefined ? [] : [{ ...manager, formats: [...manager.formats, ...formats], port }];
    });
}

/** Finds the connection manager of a request by the port, and then the first one with a route for the request. */
function byPort(managers: readonly ListeningManager[], reader: FieldReader, log: LogFields): FindCalls {
  const local = log.value(['DOWNSTREAM_LOCAL_ADDRESS', 'DOWNSTREAM_LOCAL_PORT'], {
    reader,
    user: 'listeners',
  });
  return (values: LineValues) => {
    const logged = local(values)?.replace(/^.*:/, '');
    for (const { port, find } of managers) {
      if (logged !== undefined && port !== undefined && logged !== port) continue;
      const calls = find(values);
      if (calls !== undefined) return calls;
    }
    return undefined;
  };
}
