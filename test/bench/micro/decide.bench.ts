/*
 * A complete decision without transport: bytes of a request → ShouldRateLimit → bytes of the answer, with the real
 * codec, memory store and metrics. To run it: `node build/test/bench/micro/decide.bench.js [part of a name …]`.
 */

import { readFileSync } from 'node:fs';
import { TopCounts } from '../../../src/admin/top/top-counts.js';
import { createClientCodec } from '../../../src/codec/client-codec.js';
import { RequestDecoder } from '../../../src/codec/decode-request.js';
import type { DescriptorEntry } from '../../../src/codec/messages.js';
import { systemClock } from '../../../src/limiter/clock.js';
import { MatchWork } from '../../../src/policy/match-work.js';
import { assetPath } from '../../../src/runtime/assets.js';
import { LoggedWarnings, UnmatchedWarnings } from '../../../src/server/decision-warnings.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../src/service/caller.js';
import { ShouldRateLimit } from '../../../src/service/should-rate-limit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { createLogger } from '../../../src/telemetry/logger.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { TopBuckets } from '../../../src/telemetry/top/top-buckets.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { PLAIN_ANSWERS } from '../../support/policy/plain-answers.js';
import { policyOf } from '../../support/policy/policies.js';
import { type MicroCase, runCases } from './measure.js';

/** A bucket that never becomes empty or full, so that every decision reads and writes it. */
const NEVER_EMPTY = 'token_bucket: { max_tokens: 2000000000, fill_interval: 1s }';
const EMPTY = 'token_bucket: { max_tokens: 1, fill_interval: 1h }';

const TWO_LIMITS = `rate_limits: [{ name: burst, ${NEVER_EMPTY} }, { name: daily, ${NEVER_EMPTY} }]`;

/** A tenant with six digits, which a message for another tenant replaces in place. */
const TENANT = 'tenant-000000';

/** Returns a policy with two levels: any tenant, and `rules` groups. */
function policyText(rules: number, limit: string, node = `rate_limit: { name: one, ${limit} }`): string {
  const lines = ['domain: bench', 'response_headers: [x-ratelimit]', 'descriptors:', '  - key: tenant'];
  lines.push('    descriptors:');
  for (let rule = 0; rule < rules; rule++) {
    lines.push(`      - { key: resource_group, value: group-${rule}, ${node} }`);
  }
  return lines.join('\n');
}

/** Counts buckets for `/top`, with the default capacity. */
function newTopCounts(): TopCounts {
  const nowMicros = (): number => systemClock.monotonicMicros();
  return new TopCounts(new TopBuckets({ capacity: 500, nowMicros, random: Math.random }));
}

function serviceOn(policy: string, top?: TopCounts): ShouldRateLimit {
  const compiled = policyOf(policy);
  const store = new MemoryStore({ ...MEMORY, clock: systemClock, maxBuckets: 2_000_000 });
  const metrics = new Metrics({
    maxSeries: 10_000,
    version: 'bench',
    memoryStats: () => store,
    nearLimitRatio: 0.8,
    deniedHitsCount: true,
  });
  const log = createLogger({ level: 'info', format: 'json', colour: false });
  const policySet = { domains: new Map([[compiled.domain, compiled]]), version: 'bench' };
  return new ShouldRateLimit({
    decoder: new RequestDecoder(),
    clock: systemClock,
    store,
    local: store,
    policies: { current: () => policySet },
    observer: {
      counts: metrics,
      warnings: new LoggedWarnings(log, new UnmatchedWarnings(log, () => policySet)),
      buckets: top,
    },
    storeTimeoutMicros: 2_000_000,
    maxLimits: 256,
    matchWork: new MatchWork(),
    answers: PLAIN_ANSWERS,
  });
}

function messageOf(domain: string, descriptors: readonly (readonly DescriptorEntry[])[]): Uint8Array {
  return createClientCodec().encodeRequest({
    domain,
    hitsAddend: 0,
    descriptors: descriptors.map((entries) => ({
      entries,
      limit: undefined,
      hitsAddend: undefined,
      isNegativeHits: false,
    })),
  });
}

interface CaseOptions {
  readonly rules?: number;
  readonly tenants?: number;
  readonly descriptors?: number;
  readonly limit?: string;
  /** Fields of a node that replace `rate_limit`. */
  readonly node?: string;
  /** Whether decisions are counted for `/top`. */
  readonly top?: boolean;
}

function decision({
  rules = 10,
  tenants = 1,
  descriptors = 1,
  limit = NEVER_EMPTY,
  node,
  top = false,
}: CaseOptions): MicroCase {
  return () => {
    const service = serviceOn(policyText(rules, limit, node), top ? newTopCounts() : undefined);
    const groups = Array.from({ length: descriptors }, (_unused, i) => `group-${(i * 7 + 3) % rules}`);
    const message = messageOf(
      'bench',
      groups.map((group) => [
        { key: 'tenant', value: TENANT },
        { key: 'resource_group', value: group },
      ]),
    );
    const caller = { ...CALLER_WITHOUT_DEADLINE, deadlineMicros: systemClock.monotonicMicros() + 1e12 };
    const digits = digitPositions(message);
    return (call) => {
      // The step is a prime, so that tenants have a different order than their buckets.
      if (tenants > 1) writeTenant(message, digits, (call * 7919) % tenants);
      service.handle(message, caller);
    };
  };
}

/** Returns the position of the last digit of each tenant. */
function digitPositions(message: Uint8Array): number[] {
  const positions: number[] = [];
  for (let at = 0; ; ) {
    at = Buffer.from(message).indexOf(TENANT, at);
    if (at < 0) return positions;
    at += TENANT.length;
    positions.push(at - 1);
  }
}

function writeTenant(message: Uint8Array, positions: readonly number[], tenant: number): void {
  for (let i = 0; i < positions.length; i++) {
    let rest = tenant;
    const last = positions[i] as number;
    for (let digit = 0; digit < 6; digit++) {
      message[last - digit] = 48 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
  }
}

/** The bundled policy, which derives the tenant and resource group from an API key, a method and a path. */
const openApi: MicroCase = () => {
  const text = readFileSync(assetPath('deploy/policies/open-api.yaml'), 'utf8');
  const service = serviceOn(text.replaceAll(/token_bucket: .*/g, NEVER_EMPTY));
  const message = messageOf('open-api', [
    [
      { key: 'api_key', value: 'wk_live_6f1c0a3be2d94f7a' },
      { key: 'method', value: 'GET' },
      { key: 'path', value: '/open/v5/user-chats/60b8c1d2e3/messages?limit=25' },
    ],
  ]);
  const caller = { ...CALLER_WITHOUT_DEADLINE, deadlineMicros: systemClock.monotonicMicros() + 1e12 };
  return () => service.handle(message, caller);
};

runCases(__filename, {
  'one descriptor': decision({}),
  'one descriptor, 1,000 tenants': decision({ tenants: 1000 }),
  'one descriptor, 1,000 tenants, counted for top': decision({ tenants: 1000, top: true }),
  'one descriptor, 1,000,000 tenants': decision({ tenants: 1_000_000 }),
  'one descriptor, denied': decision({ limit: EMPTY }),
  'one descriptor, 10,000 rules': decision({ rules: 10_000 }),
  'two limits': decision({ node: TWO_LIMITS }),
  '3 descriptors': decision({ descriptors: 3 }),
  '10 descriptors': decision({ descriptors: 10 }),
  '10 descriptors, 10,000 rules, 1,000 tenants': decision({ descriptors: 10, rules: 10_000, tenants: 1000 }),
  'Open API policy with derive': openApi,
});
