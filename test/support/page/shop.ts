import type { RlsClient } from '../grpc/rls-client.js';
import { descriptor } from '../policy/decider.js';

const DAY_MS = 86_400_000;

/** Returns the time at which the policy of the language models becomes active: midnight, six days from now. */
function nextWeek(): string {
  return new Date(Math.floor(Date.now() / DAY_MS + 7) * DAY_MS).toISOString();
}

/** Returns the policies of a shop that the manual's screenshots show: file name → text. */
export function shopPolicies(): Readonly<Record<string, string>> {
  return {
    'shop.yaml': `
domain: shop
descriptors:
  - key: customer
    descriptors:
      - key: endpoint
        value: checkout
        rate_limit: { name: checkout, token_bucket: { max_tokens: 40, tokens_per_fill: 2, fill_interval: 1s } }
      - key: endpoint
        value: search
        rate_limit: { name: search, unit: minute, requests_per_unit: 6000 }
      - key: endpoint
        value: export
        phase: monitoring
        rate_limit: { name: export, token_bucket: { max_tokens: 10, tokens_per_fill: 1, fill_interval: 2s } }
  - key: plan
    value: free
    rate_limits:
      - { name: burst, token_bucket: { max_tokens: 300, tokens_per_fill: 300, fill_interval: 1s } }
      - { name: daily, unit: day, requests_per_unit: 100000 }
`,
    'logins.yaml': `
domain: logins
descriptors:
  - key: remote_address
    rate_limit: { name: per-address, token_bucket: { max_tokens: 5, tokens_per_fill: 1, fill_interval: 1m } }
  - key: account
    rate_limit: { name: per-account, shadow_mode: false, unit: hour, requests_per_unit: 20 }
`,
    'models.yaml': `
domain: models
phase: { grace_period: 2026-11-01T00:00:00Z, active: ${nextWeek()} }
descriptors:
  - key: team
    descriptors:
      - key: model
        rate_limit: { name: team-model, token_bucket: { max_tokens: 60, tokens_per_fill: 1, fill_interval: 2s } }
`,
  };
}

/** Timeout of a call. The server's clock may run sixty times as fast, so that it waits only two seconds. */
const TIMEOUT_MS = 120_000;
const CUSTOMERS = ['acme', 'globex', 'initech', 'umbrella', 'zeta'];

/**
 * Sends the shop's requests at one moment of its hour, `at` from 0 to 1. The load varies over the hour. In the
 * last part of the hour, the customer mallory sends many more requests than its limit allows.
 */
export async function shopTraffic(client: RlsClient, at: number, round: number): Promise<void> {
  const load = 0.6 + 0.3 * Math.sin(at * 9) + 0.15 * Math.sin(at * 41);
  const many = (count: number) =>
    Array.from({ length: Math.max(0, Math.round(count * load)) }, (_, each) => each);
  const customer = (each: number) => `customer=${CUSTOMERS[(each * each + round) % CUSTOMERS.length]}`;
  const isBurst = at > 0.72;
  const mallory = isBurst ? Array.from({ length: 14 }, () => 'customer=mallory') : [];
  const calls: [domain: string, texts: string[]][] = [
    ...many(9).map((each): [string, string[]] => ['shop', [customer(each), 'endpoint=search']]),
    ...many(2).map((each): [string, string[]] => ['shop', [customer(each), 'endpoint=checkout']]),
    ...many(round % 3 === 0 ? 3 : 1).map((): [string, string[]] => [
      'shop',
      ['customer=globex', 'endpoint=export'],
    ]),
    ...mallory.map((who): [string, string[]] => ['shop', [who, 'endpoint=checkout']]),
    ...many(3).map((each): [string, string[]] => [
      'models',
      ['team=search', `model=${each % 2 ? 'small' : 'large'}`],
    ]),
    ...(round % 7 === 0 ? [['logins', ['remote_address=203.0.113.7']] as [string, string[]]] : []),
  ];
  await Promise.all(
    calls.map(([domain, texts]) => client.ask(domain, [descriptor(texts)], { timeoutMs: TIMEOUT_MS })),
  );
}
