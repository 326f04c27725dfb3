import { itemsAt, type Manifest, textAt } from '../../../config/manifests/manifest.js';
import type { ProblemList } from '../../../config/yaml/config-problem.js';
import { FieldReader } from '../../../config/yaml/field-reader.js';
import type { YamlValue } from '../../../config/yaml/yaml-document.js';
import type { LogFields, LogValue } from '../log-fields.js';

/** A Kubernetes resource and the problems of its file. */
export interface GatewayResource {
  readonly manifest: Manifest;
  readonly problems: ProblemList;
}

/** A listener of a Gateway, whose name is the domain of its rate limits: `namespace/gateway/listener`. */
export interface Listener {
  readonly domain: string;
  readonly port: number | undefined;
  /** '' matches every host. */
  readonly hostname: string;
}

/** Returns the namespace of a resource. */
export function namespaceOf({ fields }: Manifest): string {
  return textAt(fields, 'metadata', 'namespace') || 'default';
}

/** Returns `namespace/name` of a resource. */
export function nameOf(manifest: Manifest): string {
  return `${namespaceOf(manifest)}/${manifest.name}`;
}

/** Returns the listeners that a reference to a Gateway means, from `parentRefs` or a policy. Reports problems. */
export function listenersOf(
  reference: YamlValue,
  owner: GatewayResource,
  gateways: readonly GatewayResource[],
): readonly Listener[] {
  const namespace = textAt(reference, 'namespace') || namespaceOf(owner.manifest);
  const gateway = `${namespace}/${textAt(reference, 'name')}`;
  const section = textAt(reference, 'sectionName');
  const port = textAt(reference, 'port');
  const found = gateways.find(({ manifest }) => nameOf(manifest) === gateway);
  if (found === undefined) {
    if (section !== '') return [{ domain: `${gateway}/${section}`, port: undefined, hostname: '' }];
    owner.problems.error(
      reference.at,
      owner.manifest.path,
      `the domain contains the name of the listener, but the Gateway ${gateway.slice(0, 120)} is not in the files; ` +
        'pass its manifest',
    );
    return [];
  }
  return itemsAt(found.manifest.fields, 'spec', 'listeners')
    .filter((listener) => /^(?:HTTPS?|)$/.test(textAt(listener, 'protocol')))
    .filter((listener) => section === '' || textAt(listener, 'name') === section)
    .filter((listener) => port === '' || textAt(listener, 'port') === port)
    .map((listener) => ({
      domain: `${gateway}/${textAt(listener, 'name')}`,
      port: Number(textAt(listener, 'port')),
      hostname: textAt(listener, 'hostname').toLowerCase(),
    }));
}

/** Returns the domain of a request by its port and host. The pods of Envoy Gateway listen on port 10080 for 80. */
export function domainOf(listeners: readonly Listener[], owner: GatewayResource, log: LogFields): LogValue {
  const [only] = listeners;
  if (only === undefined) return () => undefined;
  if (listeners.length === 1) return () => only.domain;
  const reader = new FieldReader(owner.manifest.fields, owner.manifest.path, owner.problems);
  const user = 'parentRefs';
  const needsPort = listeners.some(({ port }) => port !== only.port);
  const needsHost = listeners.some(({ hostname }) => hostname !== only.hostname);
  const none = () => undefined;
  const local = needsPort
    ? log.value(['DOWNSTREAM_LOCAL_ADDRESS', 'DOWNSTREAM_LOCAL_PORT'], { reader, user })
    : none;
  const authority = needsHost ? log.header(':authority', 'start', { reader, user }) : none;
  const byHost = listeners.toSorted((a, b) => b.hostname.length - a.hostname.length);
  return (values) => {
    const port = Number(local(values)?.replace(/^.*:/, ''));
    const host = authority(values)?.toLowerCase().replace(/:\d*$/, '');
    return byHost.find((one) => isPort(one.port, port) && isHost(one.hostname, host))?.domain;
  };
}

function isPort(port: number | undefined, logged: number): boolean {
  return port === undefined || Number.isNaN(logged) || logged === port || logged === port + 10_000;
}

function isHost(hostname: string, host: string | undefined): boolean {
  if (hostname === '' || host === undefined) return true;
  return hostname.startsWith('*.') ? host.endsWith(hostname.slice(1)) : host === hostname;
}
