import { itemsAt, textAt, valueAt } from '../../../config/manifests/manifest.js';
import { FieldReader } from '../../../config/yaml/field-reader.js';
import type { YamlValue } from '../../../config/yaml/yaml-document.js';
import { jsonMembers } from '../../log/json-format.js';
import { jsonFormat, type LineValues, type LogFormat, textFormat } from '../../log/log-format.js';
import { type LogFields, type LogValue, ROUTE_NAME } from '../log-fields.js';
import type { LoggedDescriptor } from '../rate-limit.js';
import type { RequestCalls } from '../route-table.js';
import { formatNode } from './access-log.js';
import { domainOf, type GatewayResource, listenersOf, nameOf, namespaceOf } from './gateway-listeners.js';
import { type GatewayRule, readGatewayRules } from './gateway-rules.js';
import type { Manager } from './http-connection-manager.js';

/** Resources of Envoy Gateway and the Gateway API by kind. */
export type GatewayResources = ReadonlyMap<string, readonly GatewayResource[]>;

/** Kinds that are read, besides EnvoyProxy. */
const ROUTE_KINDS = ['HTTPRoute', 'GRPCRoute'];

/** A policy for the routes whose names have a prefix. */
interface Attachment {
  /** Prefix of the routes' names in Envoy: `httproute/default/shop/rule/`. */
  readonly prefix: string;
  /** The most specific policy of a route applies: a rule of the route, the route, a listener, the Gateway. */
  readonly precedence: number;
  readonly domain: LogValue;
  readonly rules: readonly GatewayRule[];
}

/**
 * Reads the BackendTrafficPolicies. Envoy Gateway names each route of Envoy after the HTTPRoute, and uses this name as
 * the first entry, so the log must contain it.
 */
export function readGateway(resources: GatewayResources, log: LogFields): Manager {
  const attachments = of(resources, 'BackendTrafficPolicy')
    .flatMap((policy) => readPolicy(policy, resources, log))
    .sort((a, b) => a.precedence - b.precedence);
  const [first] = of(resources, 'BackendTrafficPolicy');
  const routeName: LogValue =
    first === undefined
      ? () => undefined
      : log.value([ROUTE_NAME], {
          reader: new FieldReader(first.manifest.fields, first.manifest.path, first.problems),
          user: 'BackendTrafficPolicy',
        });
  return {
    formats: of(resources, 'EnvoyProxy').flatMap(accessLogs),
    find: (values) => {
      const name = routeName(values);
      if (name === undefined) return undefined;
      const attachment = attachments.find(({ prefix }) => name.startsWith(prefix));
      return attachment === undefined ? undefined : callsOf(attachment, name, values);
    },
  };
}

function of(resources: GatewayResources, kind: string): readonly GatewayResource[] {
  return resources.get(kind) ?? [];
}

/** Returns one attachment for each route that a policy applies to. */
function readPolicy(
  policy: GatewayResource,
  resources: GatewayResources,
  log: LogFields,
): readonly Attachment[] {
  const { manifest, problems } = policy;
  const { fields } = manifest;
  const spec = new FieldReader(fields, manifest.path, problems).mapping('spec');
  for (const key of ['mergeType', 'targetSelectors'])
    if (spec?.has(key) === true)
      spec.error(key, `"${key}" cannot be replayed; write the resulting policy with targetRefs`);
  const context = { log, localCluster: undefined, knowsClusters: false, knowsMetadata: false };
  const rules = readGatewayRules(fields, nameOf(manifest), problems, context);
  const single = valueAt(fields, 'spec', 'targetRef');
  const targets = [...(single === undefined ? [] : [single]), ...itemsAt(fields, 'spec', 'targetRefs')];
  return targets.flatMap((target) =>
    textAt(target, 'kind') === 'Gateway'
      ? ofGateway(target, policy, resources, log, rules)
      : ofRoute(target, policy, resources, log, rules),
  );
}

function ofRoute(
  target: YamlValue,
  policy: GatewayResource,
  resources: GatewayResources,
  log: LogFields,
  rules: readonly GatewayRule[],
): readonly Attachment[] {
  const kind = textAt(target, 'kind');
  const name = `${namespaceOf(policy.manifest)}/${textAt(target, 'name')}`;
  const section = textAt(target, 'sectionName');
  const route = of(resources, kind).find(({ manifest }) => nameOf(manifest) === name);
  if (route === undefined) {
    policy.problems.error(
      target.at,
      policy.manifest.path,
      `the domain contains the name of the listener, but the ${kind.slice(0, 60)} ${name.slice(0, 120)} is not in ` +
        'the files; pass its manifest',
    );
    return [];
  }
  const index = itemsAt(route.manifest.fields, 'spec', 'rules').findIndex(
    (rule) => section !== '' && textAt(rule, 'name') === section,
  );
  const prefix = `${prefixOf(route)}${section === '' ? '' : `${index}/`}`;
  return [{ prefix, precedence: section === '' ? 1 : 0, domain: routeDomain(route, resources, log), rules }];
}

function prefixOf({ manifest }: GatewayResource): string {
  return `${manifest.kind.toLowerCase()}/${nameOf(manifest)}/rule/`;
}

function routeDomain(route: GatewayResource, resources: GatewayResources, log: LogFields): LogValue {
  const listeners = itemsAt(route.manifest.fields, 'spec', 'parentRefs').flatMap((reference) =>
    listenersOf(reference, route, of(resources, 'Gateway')),
  );
  return domainOf(listeners, route, log);
}

/** A policy of a Gateway applies to the routes in the files that are attached to it, or else to all routes. */
function ofGateway(
  target: YamlValue,
  policy: GatewayResource,
  resources: GatewayResources,
  log: LogFields,
  rules: readonly GatewayRule[],
): readonly Attachment[] {
  const gateway = `${namespaceOf(policy.manifest)}/${textAt(target, 'name')}`;
  const precedence = textAt(target, 'sectionName') === '' ? 3 : 2;
  const routes = ROUTE_KINDS.flatMap((kind) => of(resources, kind)).filter(({ manifest }) =>
    itemsAt(manifest.fields, 'spec', 'parentRefs').some(
      (reference) =>
        `${textAt(reference, 'namespace') || namespaceOf(manifest)}/${textAt(reference, 'name')}` === gateway,
    ),
  );
  if (routes.length > 0)
    return routes.map((route) => ({
      prefix: prefixOf(route),
      precedence,
      domain: routeDomain(route, resources, log),
      rules,
    }));
  const domain = domainOf(listenersOf(target, policy, of(resources, 'Gateway')), policy, log);
  return ROUTE_KINDS.map((kind) => ({ prefix: `${kind.toLowerCase()}/`, precedence, domain, rules }));
}

/** Returns one call for each domain, in the order of Envoy Gateway's filters. */
function callsOf(
  { domain, rules }: Attachment,
  routeName: string,
  values: LineValues,
): readonly RequestCalls[] {
  const own = domain(values);
  const calls = new Map<string, { start: LoggedDescriptor[]; end: LoggedDescriptor[] }>();
  for (const { sharedName, rateLimits } of rules) {
    const name = sharedName ?? routeName;
    const ruleDomain = sharedName === undefined ? own : sharedName.replace(/\/rule\/\d+$/, '');
    if (ruleDomain === undefined) continue;
    const call = calls.get(ruleDomain) ?? { start: [], end: [] };
    for (const rateLimit of rateLimits) {
      const descriptor = rateLimit.descriptor(values, {});
      if (descriptor === undefined) continue;
      const entries = [{ key: name, value: name }, ...descriptor.entries];
      (rateLimit.applyOnStreamDone ? call.end : call.start).push({ ...descriptor, entries });
    }
    if (call.start.length + call.end.length > 0) calls.set(ruleDomain, call);
  }
  return [...calls]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([found, call]) => ({ domain: found, ...call }));
}

/** Reads `telemetry.accessLog` of an EnvoyProxy (gateway.envoyproxy.io/v1alpha1). */
function accessLogs({ manifest, problems }: GatewayResource): readonly LogFormat[] {
  return itemsAt(manifest.fields, 'spec', 'telemetry', 'accessLog', 'settings').flatMap((setting) => {
    const format = valueAt(setting, 'format');
    const title = `the format at ${problems.file}:${setting.at.line}`;
    const json = valueAt(format, 'json');
    if (json !== undefined) return [jsonFormat(title, jsonMembers(formatNode(json)))];
    const text = textAt(format, 'text');
    return text === '' ? [] : [textFormat(title, text)];
  });
}
