/* Views of a server with 1,000 rules and their metric series. */
import { RlsClient } from '../../support/grpc/rls-client.js';
import type { Attack } from '../attack/attack.js';
import { largePolicy } from '../policy-texts.js';
import type { StallCase, StallGroup } from '../stall-case.js';
import { http } from '../wire.js';

const RULES = 1000;
/** Number of descriptors in a call, below all bounds. */
const DESCRIPTORS_PER_CALL = 500;

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

const VIEW_CASES: readonly StallCase[] = PATHS.flatMap(([port, path]) => [
  { name: path, attack: get(port, path, 1) },
  { name: `${path}, 40 pipelined`, attack: get(port, path, 40), connections: [1] },
  { name: `${path}, 10 pipelined`, attack: get(port, path, 10), connections: [16] },
]);

export const VIEW_GROUP: StallGroup = {
  setup: {
    name: '1,000 rules',
    files: { 'large.yaml': largePolicy('large', RULES) },
    env: { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.1:0' },
    // Matches each rule once, which creates its series.
    prepare: async ({ weir }) => {
      const client = new RlsClient(weir.grpcPort);
      for (let first = 0; first < RULES; first += DESCRIPTORS_PER_CALL) {
        const descriptors = Array.from({ length: DESCRIPTORS_PER_CALL }, (_, n) => ({
          entries: [{ key: 'v', value: `v${first + n}` }],
          limit: undefined,
          hitsAddend: undefined,
          isNegativeHits: false,
        }));
        const { code, details } = await client.ask('large', descriptors);
        if (code !== 0) throw new Error(`a call that creates series failed: ${code} ${details}`);
      }
      client.close();
    },
  },
  cases: VIEW_CASES,
};
