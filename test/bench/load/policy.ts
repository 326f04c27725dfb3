import { createClientCodec } from '../../../src/codec/client-codec.js';
import { TENANT } from './call-template.js';

/** What becomes of the requests. */
export type Verdict =
  /** Allowed, from a bucket that is full again within a microsecond: memory keeps none of them for long. */
  | 'allowed'
  /** Allowed, from a bucket that refills too slowly for the load, and lasts all the same. */
  | 'lasting'
  /** Allowed, from a bucket that is not full again within the run: there are as many as tenants. */
  | 'kept'
  /** Denied, all but the first of each tenant. */
  | 'denied';

const BUCKETS: Readonly<Record<Verdict, string>> = {
  allowed: '{ max_tokens: 4000000000, tokens_per_fill: 1000000, fill_interval: 1s }',
  lasting: '{ max_tokens: 4000000000, tokens_per_fill: 1000, fill_interval: 1s }',
  kept: '{ max_tokens: 800000, tokens_per_fill: 1, fill_interval: 1h }',
  denied: '{ max_tokens: 1, fill_interval: 1h }',
};

/**
 * What limits: the plain rule, a window, also with metrics sent to statsd and mapped for Prometheus; or what a node may
 * have more, and matchers of which the tenant, an address then, or the resource group meets the last.
 */
export type Limit =
  | 'token bucket'
  | 'window'
  | 'window, all sinks'
  | 'two limits'
  | 'candidate'
  | '1,000 CIDR blocks'
  | 'two limits, candidate, 1,000 CIDR blocks'
  | '1,000 regular expressions';

const MATCHERS = 1000;

/** Two levels: any tenant, then one of `rules` resource groups. */
export function policyText(rules: number, verdict: Verdict, limit: Limit = 'token bucket'): string {
  const lines = ['domain: bench', 'response_headers: [x-ratelimit]', 'descriptors:'];
  if (limit.includes('CIDR')) lines.push(...cidrNodes());
  lines.push(
    limit.includes('CIDR') ? `  - { key: tenant, value_cidr: "${TENANT_BLOCK}",` : '  - { key: tenant,',
  );
  lines.push('      descriptors: [');
  if (limit.includes('regular')) lines.push(...regexNodes());
  for (let rule = 0; rule < rules; rule++) {
    const name = groupName(rule);
    const value = limit.includes('regular') ? `value_regex: "${name}(-[a-z]+)?"` : `value: ${name}`;
    lines.push(`        { key: resource_group, ${value}, ${limitText(name, verdict, limit)} },`);
  }
  return `${lines.join('\n')}\n      ] }\n`;
}

function limitText(name: string, verdict: Verdict, limit: Limit): string {
  const bucket = `token_bucket: ${BUCKETS[verdict]}`;
  const window = `unit: hour, requests_per_unit: ${verdict === 'denied' ? 1 : 4_000_000_000}`;
  const candidate = limit.includes('candidate') ? `, candidate: { ${bucket} }` : '';
  if (limit.startsWith('window')) return `rate_limit: { name: ${name}, ${window} }`;
  if (limit.startsWith('two limits'))
    return `rate_limits: [{ name: burst, ${bucket} }, { name: daily, ${bucket} }]${candidate}`;
  return `rate_limit: { name: ${name}, ${bucket} }${candidate}`;
}

/** The address that stands for the tenant where blocks are matched, and the block that holds it. */
export const TENANT_ADDRESS = '10.20.30.40';
const TENANT_BLOCK = '10.20.30.0/24';

/** All but the one that holds {@link TENANT_ADDRESS}, which no other does. */
function cidrNodes(): string[] {
  return Array.from({ length: MATCHERS - 1 }, (_, i) => {
    const block = `${11 + Math.floor(i / 250)}.${i % 250}.${(i * 7) % 256}.0/24`;
    return `  - { key: tenant, value_cidr: "${block}", rate_limit: { unlimited: true } }`;
  });
}

function regexNodes(): string[] {
  return Array.from(
    { length: MATCHERS },
    (_, i) =>
      `        { key: resource_group, value_regex: "(other|else)-${i}-[0-9a-f]+", rate_limit: { unlimited: true } },`,
  );
}

function groupName(rule: number): string {
  return `group-${rule}`;
}

/** An encoded RateLimitRequest of one tenant with so many descriptors of two entries, spread over the rules. */
export function messageOf(descriptors: number, rules: number, tenant = TENANT): Uint8Array {
  return createClientCodec().encodeRequest({
    domain: 'bench',
    hitsAddend: 0,
    descriptors: Array.from({ length: descriptors }, (_, i) => ({
      entries: [
        { key: 'tenant', value: tenant },
        { key: 'resource_group', value: groupName((i * 7 + 3) % rules) },
      ],
      limit: undefined,
      hitsAddend: undefined,
      isNegativeHits: false,
    })),
  });
}
