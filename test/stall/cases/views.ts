/* Views of a server with 10,000 rules and as many series as it may keep. */
import { RlsClient } from '../../support/grpc/rls-client.js';
import type { Attack } from '../attack/attack.js';
import { largePolicy } from '../policy-texts.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import { http } from '../wire.js';

const RULES = 10_000;
/** Descriptors in one call, below any bound. */
const AT_ONCE = 500;

function get(port: 'http' | 'debug', path: string, pipelined: number): () => Attack {
  return () => ({ kind: 'http', port, request: http('GET', path), pipelined });
}

const PATHS: readonly (readonly ['http' | 'debug', string])[] = [
  ['http', '/metrics'],
  ['http', '/healthcheck?detail'],
  ['debug', '/stats'],
  ['debug', '/rlconfig'],
  ['debug', '/rlconfig?format=json'],
  ['debug', '/rlconfig?format=tree'],
];

export const VIEW_CASES: readonly StallCase[] = PATHS.flatMap(([port, path]) => [
  { name: path, attack: get(port, path, 1) },
  { name: `${path}, 40 pipelined`, attack: get(port, path, 40) },
]);

export const VIEW_GROUP: StallGroup = {
  setup: {
    name: '10,000 rules, 100,000 series',
    files: { 'large.yaml': largePolicy('large', RULES) },
    env: { METRICS_MAX_SERIES: '100000', USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.1:0' },
    // Each rule is met once, which makes its series.
    prepare: async ({ weir }) => {
      const client = new RlsClient(weir.grpcPort);
      for (let first = 0; first < RULES; first += AT_ONCE) {
        const descriptors = Array.from({ length: AT_ONCE }, (_, n) => ({
          entries: [{ key: 'v', value: `v${first + n}` }],
          limit: undefined,
          hitsAddend: undefined,
          isNegativeHits: false,
        }));
        const { code, details } = await client.ask('large', descriptors);
        if (code !== 0) throw new Error(`the calls that make series fail: ${code} ${details}`);
      }
      client.close();
    },
  },
  cases: VIEW_CASES,
};
