import type { Flow } from './network-policy.js';

const client = { labels: { 'weir-client': 'true' }, namespace: 'gateway' } as const;
const ours = { labels: { 'app.kubernetes.io/name': 'redis' } } as const;
const mesh = { labels: { app: 'istiod' }, namespace: 'istio-system' } as const;
/** Connections that weir's network policy allows or blocks, with Redis in its namespace, Istio, xDS and statsd. */
export const FLOWS: readonly [isAllowed: boolean, flow: Flow][] = [
  [true, { direction: 'in', ...client, port: 8081 }],
  [false, { direction: 'in', namespace: 'gateway', port: 8081 }],
  [true, { direction: 'in', namespace: 'monitoring', port: 8080 }],
  [false, { direction: 'in', namespace: 'gateway', port: 8080 }],
  [false, { direction: 'in', ...client, port: 6070 }],
  // Istio: metrics that a sidecar merges, and ambient mode with its probes.
  [true, { direction: 'in', namespace: 'monitoring', port: 15_020 }],
  [true, { direction: 'in', ...client, port: 15_008 }],
  [true, { direction: 'in', namespace: 'monitoring', port: 15_008 }],
  [false, { direction: 'in', namespace: 'gateway', port: 15_008 }],
  [true, { direction: 'in', address: '169.254.7.127', port: 8081 }],
  [true, { direction: 'in', address: '169.254.7.127', port: 8080 }],
  [false, { direction: 'in', address: '203.0.113.7', port: 8081 }],
  [true, { direction: 'out', ...ours, port: 6379 }],
  [false, { direction: 'out', namespace: 'other', port: 6379 }],
  // Sidecars, and ambient mode.
  [true, { direction: 'out', ...mesh, port: 15_012 }],
  [false, { direction: 'out', namespace: 'other', port: 15_012 }],
  [true, { direction: 'out', ...ours, port: 15_008 }],
  // DNS: CoreDNS, and NodeLocal DNSCache at its own address and at that of the Service.
  [true, { direction: 'out', namespace: 'kube-system', protocol: 'UDP', port: 53 }],
  [true, { direction: 'out', address: '169.254.20.10', protocol: 'UDP', port: 53 }],
  [true, { direction: 'out', address: '10.96.0.10', protocol: 'TCP', port: 53 }],
  // A management server, and statsd on the node.
  [true, { direction: 'out', namespace: 'control-plane', port: 18_000 }],
  [true, { direction: 'out', address: '10.1.2.3', protocol: 'UDP', port: 8125 }],
  [true, { direction: 'out', namespace: 'monitoring', protocol: 'TCP', port: 8125 }],
  [false, { direction: 'out', address: '203.0.113.7', port: 443 }],
];
