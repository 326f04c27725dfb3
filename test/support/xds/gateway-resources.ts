import { encodeConfig, type XdsResource } from './xds-server.js';

/*
 * The resources that Envoy Gateway and Envoy AI Gateway create for their rate limit services, and the names that they
 * use.
 */

/** Node of the rate limit service that Envoy Gateway deploys. */
export const GATEWAY_NODE = 'envoy-ratelimit';
/** Domain of a listener of Envoy Gateway. */
export const GATEWAY_DOMAIN = 'default/eg/http';
/** Entry of the first rule of the HTTPRoute `backend`. */
export const GATEWAY_ROUTE = 'httproute/default/backend/rule/0/match/0/*';

/** Node of the rate limit service of Envoy AI Gateway. */
export const AI_NODE = 'envoy-ai-gateway-ratelimit';
/** Domain of all QuotaPolicies of Envoy AI Gateway. */
export const QUOTA_DOMAIN = 'ai-gateway-quota';
/** Keys of the entries for a quota with a bucket rule: a limit for each `x-tenant`, and the default bucket. */
export const TENANT_BUCKET = 'rule-0-x-tenant-match-0';
export const DEFAULT_BUCKET = 'rule-1-match--1';

/** The resource of Envoy Gateway for the rule of a BackendTrafficPolicy: 3 requests a day for each x-user-id. */
export const GATEWAY_RESOURCE: XdsResource = {
  json: {
    name: GATEWAY_DOMAIN,
    domain: GATEWAY_DOMAIN,
    descriptors: [
      {
        key: GATEWAY_ROUTE,
        value: GATEWAY_ROUTE,
        descriptors: [{ key: 'rule-0-match-0', rateLimit: { requestsPerUnit: 3, unit: 'DAY' } }],
      },
    ],
  },
};

const rule = (key: string, requestsPerUnit: number, value?: string) => ({
  key,
  ...(value !== undefined && { value }),
  rate_limit: { requests_per_unit: requestsPerUnit, unit: 'DAY' },
  quota_mode: true,
});

/**
 * The resource of Envoy AI Gateway for QuotaPolicies: gpt-4 has `tokens` a day; for claude, each tenant has 5, and
 * all others share 7. `others`: the tokens of gpt-4 on further backends, by backend.
 */
export function quotas(tokens: number, others: Readonly<Record<string, number>> = {}): XdsResource {
  const backend = (value: string, descriptors: readonly object[]) => ({
    key: 'backend_name',
    value,
    descriptors,
  });
  return encodeConfig({
    name: QUOTA_DOMAIN,
    domain: QUOTA_DOMAIN,
    descriptors: [
      backend('default/openai', [
        rule('model_name_override', tokens, 'gpt-4'),
        {
          key: 'model_name_override',
          value: 'claude',
          descriptors: [rule(TENANT_BUCKET, 5), rule(DEFAULT_BUCKET, 7, DEFAULT_BUCKET)],
        },
      ]),
      ...Object.entries(others).map(([name, limit]) =>
        backend(name, [rule('model_name_override', limit, 'gpt-4')]),
      ),
    ],
  });
}
