/* Calls with long hold tokens. The holds are forged, but weir has to ask the store for them. */
import { digestOf } from '../../../src/service/holds/held-rules.js';
import { encodeToken } from '../../../src/service/holds/hold-token.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import { descriptor, request } from '../wire.js';

const files = {
  'held.yaml': `domain: held
descriptors: [{ key: v, rate_limit: { concurrency: { max: 1000000 } } }]
`,
};

/** Holds in a token of about 180,000 characters. */
const HOLDS = 2900;

function forgedToken(): string {
  const suffix = '%holds';
  const tag = '4:held1:v1:a';
  const token = encodeToken(
    Array.from({ length: HOLDS }, (_, n) => ({
      key: `${tag}${suffix}`,
      tagLength: tag.length,
      suffix,
      id: n.toString(16).padStart(24, '0'),
      lifetimeMillis: 60_000,
      amount: 1,
      fullMicros: 0,
      rule: digestOf({ path: 'v', bucketSuffix: suffix }),
      isLocal: false,
      freesUnknown: false,
    })),
  );
  return String(token);
}

function tokenCase(store: string): StallCase {
  return {
    name: `${store}, a hold token of ${HOLDS} holds`,
    attack: () => ({
      kind: 'grpc',
      messages: [request('held', descriptor(['hold', forgedToken()]))],
      streams: 4,
      timeout: '1S',
    }),
  };
}

export const HOLD_GROUPS: readonly StallGroup[] = [
  { setup: { name: 'holds in memory', files }, cases: [tokenCase('memory')] },
  { setup: { name: 'holds in Redis', files, redis: true }, cases: [tokenCase('Redis')] },
];
