import { fromHeader, generic, type LimitedRoute, type RouteEnvoy, startRouteEnvoy } from './route-envoy.js';

/** Derives an entry from the hold token in the dynamic metadata. Without a hold token, Envoy sends no descriptor. */
const token = {
  metadata: {
    source: 'DYNAMIC',
    descriptor_key: 'hold',
    metadata_key: { key: 'envoy.filters.http.ratelimit', path: [{ key: 'hold' }] },
  },
};

/** Holds at the start of a request. Settles at its end, with the use in a header of the response, if it has one. */
const holdAndSettle = (headers: readonly string[]) => [
  ...headers.map((header) => ({ actions: [fromHeader(header)] })),
  { apply_on_stream_done: true, hits_addend: { format: '%RESP(x-tokens-used)%' }, actions: [token] },
  { apply_on_stream_done: true, actions: [token, generic('done', '1')] },
];

/** Paths of {@link startHoldEnvoy}, and the further fields of their actions. */
const PATHS: Readonly<Record<string, object>> = {
  '/retry': { retry_policy: { retry_on: '5xx', num_retries: 1 } },
  '/redirect': { internal_redirect_policy: { max_internal_redirects: 1 } },
  '/timeout': { timeout: '0.2s' },
  '/socket': { timeout: '0s', upgrade_configs: [{ upgrade_type: 'websocket' }] },
  '/': { timeout: '0s' },
};

export interface HoldEnvoyOptions {
  readonly domain: string;
  readonly weirPort: number;
  readonly upstreamPort: number;
  /** Each of these headers is the key of a limit. A request with several of them is one request for several limits. */
  readonly keys: readonly string[];
  /** Timeout of a decision. */
  readonly timeout?: string;
}

/**
 * Returns a policy for the domain `exports`: two concurrency limits, and a budget that each request reserves a part of.
 * The holds of the limit `brief` expire after `briefMs`.
 */
export function exportsPolicy(briefMs: number): string {
  return `
domain: exports
descriptors:
  - key: tenant
    rate_limit: { concurrency: { max: 2, expires_after: 60s } }
  - key: brief
    rate_limit: { concurrency: { max: 2, expires_after: ${briefMs / 1000}s } }
  - key: budget
    rate_limit: { algorithm: fixed_window, unit: year, requests_per_unit: 100, hold: { amount: 5, expires_after: 60s } }
`;
}

/** Keys of the limits of {@link exportsPolicy}. */
export const EXPORT_KEYS = ['tenant', 'brief', 'budget'];

/** Starts a real Envoy that holds and settles. It denies requests for which weir does not answer. */
export function startHoldEnvoy({ keys, ...options }: HoldEnvoyOptions): Promise<RouteEnvoy> {
  const rateLimits = holdAndSettle(keys);
  const routes = Object.entries(PATHS).map(([path, action]): LimitedRoute => ({ path, rateLimits, action }));
  return startRouteEnvoy({ ...options, failureModeDeny: true, routes });
}
