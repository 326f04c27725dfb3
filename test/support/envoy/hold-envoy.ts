import { fromHeader, generic, type LimitedRoute, type RouteEnvoy, startRouteEnvoy } from './route-envoy.js';

/** Derives an entry from the hold token in the dynamic metadata. Without a hold token, Envoy sends no descriptor. */
const token = {
  metadata: {
    source: 'DYNAMIC',
    descriptor_key: 'hold',
    metadata_key: { key: 'envoy.filters.http.ratelimit', path: [{ key: 'hold' }] },
  },
};

/** Holds at the start of a request. Settles at its end, with the use that `format` yields, or without a known use. */
const holdAndSettle = (headers: readonly string[], format: string) => [
  ...headers.map((header) => ({ actions: [fromHeader(header)] })),
  { apply_on_stream_done: true, hits_addend: { format }, actions: [token] },
  { apply_on_stream_done: true, actions: [token, generic('done', '1')] },
];

/** Reads the use from the last event of a streamed response, without buffering the response. */
const USE_OF_STREAM = `
function envoy_on_response(handle)
  local last = ""
  for chunk in handle:bodyChunks() do
    last = (last .. chunk:getBytes(0, chunk:length())):sub(-4096)
  end
  local used = last:match('"total_tokens":%s*(%d+)')
  if used then handle:streamInfo():dynamicMetadata():set("llm", "used", used) end
end`;

/** Paths of {@link startHoldEnvoy}, and the further fields of their actions. */
const PATHS: Readonly<Record<string, object>> = {
  '/retry': { retry_policy: { retry_on: '5xx', num_retries: 1 } },
  '/redirect': { internal_redirect_policy: { max_internal_redirects: 1 } },
  '/timeout': { timeout: '0.2s' },
  '/socket': { timeout: '0s', upgrade_configs: [{ upgrade_type: 'websocket' }] },
  '/stream': { timeout: '0s' },
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
  /** Whether the use on the path `/stream` is in the body of the response, as `"total_tokens":5`. */
  readonly readsStreams?: boolean;
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
export function startHoldEnvoy({ keys, readsStreams, ...options }: HoldEnvoyOptions): Promise<RouteEnvoy> {
  const routes = Object.entries(PATHS).map(
    ([path, action]): LimitedRoute => ({
      path,
      rateLimits: holdAndSettle(
        keys,
        path === '/stream' ? '%DYNAMIC_METADATA(llm:used)%' : '%RESP(x-tokens-used)%',
      ),
      action,
    }),
  );
  return startRouteEnvoy({
    ...options,
    ...(readsStreams === true && { lua: USE_OF_STREAM }),
    failureModeDeny: true,
    routes,
  });
}
