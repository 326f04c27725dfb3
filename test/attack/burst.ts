/* Many large requests at once, which cannot all be decided before their deadline. */

import type { StallCase } from '../stall/stall-case.js';
import type { AttackResult } from './attacker/attack.js';
import { burstPolicy } from './policy-texts.js';
import { descriptor, request } from './wire.js';

/** weir reads only a part of a connection's calls in one turn, so the rest of a message may be read much later. */
const CONNECTIONS = 20;
const CALLS_PER_CONNECTION = 100;
const CALLS = CONNECTIONS * CALLS_PER_CONNECTION;
const DESCRIPTORS = 128;
/** Tokens in the only bucket that these requests share. */
const TOKENS = 100;
/** Envoy's default. */
const TIMEOUT_MS = 20;

export const BURST_FILES = { 'burst.yaml': burstPolicy('burst', TOKENS) };

/** Returns what is wrong: calls without a decision, or more allowed calls than the bucket has tokens. */
function burstFailures({ answers }: AttackResult): string[] {
  const allowed = answers['0 OK'] ?? 0;
  const undecided = CALLS - allowed - (answers['0 OVER_LIMIT'] ?? 0);
  const failures: string[] = [];
  if (undecided !== 0) failures.push(`${undecided} of ${CALLS} calls got no decision`);
  if (allowed > TOKENS) failures.push(`${allowed} calls were allowed; the bucket has ${TOKENS} tokens`);
  return failures;
}

export const BURST_CASE: StallCase = {
  name: '2,000 large requests at once',
  attacks: () => [
    {
      kind: 'grpc',
      connections: CONNECTIONS,
      messages: [
        request(
          'burst',
          descriptor(['shared', 'bucket']),
          ...Array.from({ length: DESCRIPTORS - 1 }, (_, n) => descriptor(['v', `${n}`])),
        ),
      ],
      streams: CALLS_PER_CONNECTION,
      calls: CALLS_PER_CONNECTION,
      timeoutMs: TIMEOUT_MS,
    },
  ],
  failuresOf: burstFailures,
};
