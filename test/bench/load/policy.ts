import { createReferenceCodec } from '../../../src/codec/reference-codec.js';
import { TENANT } from './call-template.js';

/** What becomes of the requests. */
export type Verdict =
  /** Allowed, from a bucket that is full again within a microsecond: memory keeps none of them for long. */
  | 'allowed'
  /** Allowed, from a bucket that is not full again within the run: there are as many as tenants. */
  | 'kept'
  /** Denied, all but the first of each tenant. */
  | 'denied';

const BUCKETS: Readonly<Record<Verdict, string>> = {
  allowed: '{ max_tokens: 4000000000, tokens_per_fill: 1000000, fill_interval: 1s }',
  kept: '{ max_tokens: 800000, tokens_per_fill: 1, fill_interval: 1h }',
  denied: '{ max_tokens: 1, fill_interval: 1h }',
};

/** What limits, and whether metrics are also sent to statsd and mapped for Prometheus. */
export type Limit = 'token bucket' | 'window' | 'window, all sinks';

/** Two levels: any tenant, then one of `rules` resource groups. */
export function policyText(rules: number, verdict: Verdict, limit: Limit = 'token bucket'): string {
  const rate =
    limit === 'token bucket'
      ? `token_bucket: ${BUCKETS[verdict]}`
      : `unit: hour, requests_per_unit: ${verdict === 'denied' ? 1 : 4_000_000_000}`;
  const lines = ['domain: bench', 'response_headers: [x-ratelimit]', 'descriptors:', '  - key: tenant'];
  lines.push('    descriptors:');
  for (let rule = 0; rule < rules; rule++) {
    const name = groupName(rule);
    lines.push(`      - { key: resource_group, value: ${name}, rate_limit: { name: ${name}, ${rate} } }`);
  }
  return `${lines.join('\n')}\n`;
}

function groupName(rule: number): string {
  return `group-${rule}`;
}

/** An encoded RateLimitRequest of one tenant with so many descriptors of two entries, spread over the rules. */
export function messageOf(descriptors: number, rules: number): Uint8Array {
  return createReferenceCodec().encodeRequest({
    domain: 'bench',
    hitsAddend: 0,
    descriptors: Array.from({ length: descriptors }, (_, i) => ({
      entries: [
        { key: 'tenant', value: TENANT },
        { key: 'resource_group', value: groupName((i * 7 + 3) % rules) },
      ],
      limit: undefined,
      hitsAddend: undefined,
      isNegativeHits: false,
    })),
  });
}
