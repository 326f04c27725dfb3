/* Calls with many hold tokens. The holds are forged, but weir has to ask the store for them. */
import { ruleDigest } from '../../../src/policy/names/rule-digest.js';
import { inventedToken } from '../../support/limiter/hold-tokens.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import { descriptor, request } from '../wire.js';

const files = {
  'held.yaml': `domain: held
descriptors: [{ key: v, rate_limit: { concurrency: { max: 1000000 } } }]
`,
};

/** Holds in each of four tokens of about 8,000 characters. */
const HOLDS = 100;

function forgedToken(): string {
  const suffix = '%holds';
  const tag = '4:held1:v1:a';
  return inventedToken(
    Array.from({ length: HOLDS }, () => ({
      key: `${tag}${suffix}`,
      tagLength: tag.length,
      suffix,
      lifetimeMillis: 60_000,
      amount: 1,
      fullMicros: 0,
      rule: ruleDigest('1:v0:'),
      isLocal: false,
      freesUnknown: false,
    })),
  );
}

function tokenCase(store: string): StallCase {
  return {
    name: `${store}, four hold tokens of ${HOLDS} holds`,
    attack: () => ({
      kind: 'grpc',
      messages: [request('held', ...[1, 2, 3, 4].map(() => descriptor(['hold', forgedToken()])))],
      streams: 4,
      timeout: '1S',
    }),
  };
}

export const HOLD_GROUPS: readonly StallGroup[] = [
  { setup: { name: 'holds in memory', files }, cases: [tokenCase('memory')] },
  { setup: { name: 'holds in Redis', files, redis: true }, cases: [tokenCase('Redis')] },
];
