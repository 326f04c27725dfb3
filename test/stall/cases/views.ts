/* Views of a server with 1,000 rules and their metric series. */

import { largePolicy } from '../../attack/policy-texts.js';
import { http } from '../../attack/wire.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import type { StallCase, StallGroup } from '../stall-case.js';

const RULES = 1000;
const DESCRIPTORS_PER_CALL = 100;

const PATHS: readonly (readonly ['http' | 'debug', string])[] = [
  ['http', '/metrics'],
  ['http', '/healthcheck?detail'],
  ['debug', '/stats'],
  ['debug', '/rlconfig'],
  ['debug', '/rlconfig?format=json'],
  ['debug', '/rlconfig?format=tree'],
];

const VIEW_CASES: readonly StallCase[] = PATHS.map(([port, path]) => ({
  name: path,
  attacks: () => [{ kind: 'http', port, request: http('GET', path), pipelined: 1 }],
}));

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
