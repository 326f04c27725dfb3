import { BlockList } from 'node:net';

type Labels = Readonly<Record<string, string>>;

interface Selector {
  readonly matchLabels?: Labels;
}

interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string };
}

interface Port {
  readonly protocol?: string;
  readonly port: number;
}

interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly Port[];
}

/** `spec` of a networking.k8s.io/v1 NetworkPolicy, with the fields that weir's policies use. */
export interface NetworkPolicySpec {
  readonly policyTypes: readonly string[];
  readonly ingress?: readonly Rule[];
  readonly egress?: readonly Rule[];
}

/**
 * A connection from or to a pod (`labels`, with its namespace unless it is weir's) or an address. `port` is the
 * receiving port.
 */
export interface Flow {
  readonly direction: 'in' | 'out';
  readonly labels?: Labels;
  readonly namespace?: string;
  readonly address?: string;
  readonly protocol?: 'TCP' | 'UDP';
  readonly port: number;
}

function selects({ matchLabels = {} }: Selector, labels: Labels): boolean {
  return Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
}

function isPeer({ podSelector, namespaceSelector, ipBlock }: Peer, flow: Flow): boolean {
  if (ipBlock !== undefined) {
    const [network = '', prefix] = ipBlock.cidr.split('/');
    const block = new BlockList();
    block.addSubnet(network, Number(prefix));
    return flow.address !== undefined && block.check(flow.address);
  }
  if (flow.address !== undefined) return false;
  const isNamespace =
    namespaceSelector === undefined
      ? flow.namespace === undefined
      : selects(namespaceSelector, { 'kubernetes.io/metadata.name': flow.namespace ?? 'weir' });
  return isNamespace && (podSelector === undefined || selects(podSelector, flow.labels ?? {}));
}

/** Returns whether a policy that selects weir's pods allows a connection, as Kubernetes documents it. */
export function allows(spec: NetworkPolicySpec, flow: Flow): boolean {
  const isIngress = flow.direction === 'in';
  if (!spec.policyTypes.includes(isIngress ? 'Ingress' : 'Egress')) return true;
  return ((isIngress ? spec.ingress : spec.egress) ?? []).some(({ from, to, ports }) => {
    const peers = (isIngress ? from : to) ?? [];
    const isOpen = (ports ?? []).some(
      ({ protocol = 'TCP', port }) => port === flow.port && protocol === (flow.protocol ?? 'TCP'),
    );
    return (
      (peers.length === 0 || peers.some((peer) => isPeer(peer, flow))) && (ports === undefined || isOpen)
    );
  });
}

/** Describes a connection for the title of a test. */
export function flowText({ direction, labels, namespace, address, protocol = 'TCP', port }: Flow): string {
  const pod = `a pod ${JSON.stringify(labels ?? {})} in ${namespace ?? "weir's namespace"}`;
  return `${direction === 'in' ? 'from' : 'to'} ${address ?? pod}, ${protocol} ${port}`;
}
