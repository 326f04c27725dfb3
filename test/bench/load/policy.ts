import { createClientCodec } from '../../../src/codec/client-codec.js';
import { TENANT, TENANT_DIGITS, TOKEN } from './call-template.js';

/** Kind of the buckets in a policy. */
export type BucketKind =
  /** Buckets that refill within a microsecond, so that the memory store evicts them soon. All requests are allowed. */
  | 'fast refill'
  /** Large buckets that refill slower than the load, but never become empty. All requests are allowed. */
  | 'slow refill'
  /** Buckets that refill over hours, so that the store keeps a bucket for each tenant. All requests are allowed. */
  | 'kept'
  /** Buckets with one token. All requests except the first of each tenant are denied. */
  | 'denied'
  /** A bucket that allows half of the calls of a case with leases, 20,000 per second. */
  | 'half of the calls';

const BUCKETS: Readonly<Record<BucketKind, string>> = {
  'fast refill': '{ max_tokens: 4000000000, tokens_per_fill: 1000000, fill_interval: 1s }',
  'slow refill': '{ max_tokens: 4000000000, tokens_per_fill: 1000, fill_interval: 1s }',
  kept: '{ max_tokens: 800000, tokens_per_fill: 1, fill_interval: 1h }',
  denied: '{ max_tokens: 1, tokens_per_fill: 1, fill_interval: 1h }',
  'half of the calls': '{ max_tokens: 10000, tokens_per_fill: 10000, fill_interval: 1s }',
};

/** The bucket of a limit with plans. The plan of each tenant has the same numbers as {@link BUCKETS}. */
const PLANNED_BUCKET = `{ ${['max_tokens', 'tokens_per_fill', 'fill_interval']
  .map((field) => `${field}: { plan: ${field} }`)
  .join(', ')} }`;
const PLANS = 3;
const PLAN_ROWS = 1_000_000;

/** Returns the table of plans: rows for the tenants of {@link TENANT} with the smallest numbers. */
export function planTable(): string {
  const row = (_: unknown, i: number): string =>
    `${TENANT.slice(0, -TENANT_DIGITS)}${String(i).padStart(TENANT_DIGITS, '0')},plan-${i % PLANS}\n`;
  return `tenant,plan\n${Array.from({ length: PLAN_ROWS }, row).join('')}`;
}

function plansText(bucketKind: BucketKind, table: string): string {
  const plans = Array.from({ length: PLANS }, (_, i) => `plan-${i}: ${BUCKETS[bucketKind]}`);
  return `plans: { by: tenant, from: ${table}, default: plan-0, define: { ${plans.join(', ')} } }`;
}

/**
 * Kind of the limits and matchers in a policy. With `all sinks`, weir also sends metrics to statsd and maps them for
 * Prometheus. With CIDR blocks, the tenant is an address. The request matches the last of the matchers.
 */
export type Limit =
  | 'token bucket'
  | 'window'
  | 'window, all sinks'
  /** Holds that expire after a second, because some loads consist of starts only. */
  | 'concurrency'
  | 'reservation'
  /** A token bucket whose tokens each process leases for 50 ms, up to 1,000 (the default) or 100 at once. */
  | 'lease'
  | 'lease of 100'
  | 'two limits'
  /** The numbers of a token bucket come from the plan of the tenant, in a table with a million rows. */
  | 'plan'
  | '1,000 CIDR blocks'
  | 'two limits, 1,000 CIDR blocks'
  | '1,000 regular expressions';

const MATCHERS = 1000;

/**
 * Returns a policy with two levels: any tenant, and `rules` resource groups. `table` is the path of {@link planTable}.
 */
export function policyText(
  rules: number,
  bucketKind: BucketKind,
  limit: Limit = 'token bucket',
  table = '',
): string {
  const lines = ['domain: bench', 'response_headers: [x-ratelimit]'];
  if (limit === 'plan') lines.push(plansText(bucketKind, table));
  lines.push('descriptors:');
  if (limit.includes('CIDR')) lines.push(...cidrNodes());
  lines.push(
    limit.includes('CIDR') ? `  - { key: tenant, value_cidr: "${TENANT_BLOCK}",` : '  - { key: tenant,',
  );
  lines.push('      descriptors: [');
  if (limit.includes('regular')) lines.push(...regexNodes());
  for (let rule = 0; rule < rules; rule++) {
    const name = groupName(rule);
    const value = limit.includes('regular') ? `value_regex: "${name}(-[a-z]+)?"` : `value: ${name}`;
    lines.push(`        { key: resource_group, ${value}, ${limitText(name, bucketKind, limit)} },`);
  }
  return `${lines.join('\n')}\n      ] }\n`;
}

function limitText(name: string, bucketKind: BucketKind, limit: Limit): string {
  const bucket = `token_bucket: ${BUCKETS[bucketKind]}`;
  const window = `unit: hour, requests_per_unit: ${bucketKind === 'denied' ? 1 : 4_000_000_000}`;
  if (limit === 'concurrency')
    return `rate_limit: { name: ${name}, concurrency: { max: 4000000000, expires_after: 1s } }`;
  if (limit === 'reservation')
    return `rate_limit: { name: ${name}, ${bucket}, max_debt: 1000, hold: { amount: 2, expires_after: 1s } }`;
  if (limit.startsWith('lease')) {
    const max = limit === 'lease' ? '' : ', max: 100';
    return `rate_limit: { name: ${name}, ${bucket}, lease: { for: 50ms${max} } }`;
  }
  if (limit === 'plan') return `rate_limit: { name: ${name}, token_bucket: ${PLANNED_BUCKET} }`;
  if (limit.startsWith('window')) return `rate_limit: { name: ${name}, ${window} }`;
  if (limit.startsWith('two limits'))
    return `rate_limits: [{ name: burst, ${bucket} }, { name: daily, ${bucket} }]`;
  return `rate_limit: { name: ${name}, ${bucket} }`;
}

/** The tenant of requests that match CIDR blocks, and the block that contains it. */
export const TENANT_ADDRESS = '10.20.30.40';
const TENANT_BLOCK = '10.20.30.0/24';

/** Returns nodes with blocks that do not contain {@link TENANT_ADDRESS}. */
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

/** Returns an encoded RateLimitRequest of a tenant. Its descriptors have two entries, and match different rules. */
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

/**
 * Returns an encoded RateLimitRequest that ends a request, with a use of 1, and with {@link TOKEN} repeated as its hold
 * token of `length` characters.
 */
export function endMessageOf(length: number): Uint8Array {
  return createClientCodec().encodeRequest({
    domain: 'bench',
    hitsAddend: 0,
    descriptors: [
      {
        entries: [{ key: 'hold', value: TOKEN.repeat(length) }],
        limit: undefined,
        hitsAddend: 1,
        isNegativeHits: false,
      },
    ],
  });
}
