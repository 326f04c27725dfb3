/* Many large requests at once, which cannot all be decided before their deadline. */
import type { AttackResult } from '../attack/attack.js';
import { burstPolicy } from '../policy-texts.js';
import type { StallCase } from '../stall-case.js';
import { descriptor, request } from '../wire.js';

/** So many that all calls of a connection fit into its window, and arrive at once. */
const CONNECTIONS = 100;
const CALLS_PER_CONNECTION = 20;
const CALLS = CONNECTIONS * CALLS_PER_CONNECTION;
const DESCRIPTORS = 128;
/** Tokens in the only bucket that these requests share. */
const TOKENS = 100;
/** Envoy's default. */
const TIMEOUT_MS = 20;

export const BURST_FILES = { 'burst.yaml': burstPolicy('burst', TOKENS) };

const allowedOf = ({ answers }: AttackResult): number => answers['0 OK'] ?? 0;
/** The calls that got DEADLINE_EXCEEDED. */
const expiredOf = ({ answers }: AttackResult): number => answers['4'] ?? 0;

/** Returns what is wrong: calls without an answer, or more allowed calls than the bucket has tokens. */
function burstFailures(result: AttackResult): string[] {
  const allowed = allowedOf(result);
  const unanswered = CALLS - allowed - (result.answers['0 OVER_LIMIT'] ?? 0) - expiredOf(result);
  const failures: string[] = [];
  if (unanswered !== 0) failures.push(`${unanswered} of ${CALLS} calls were not answered`);
  if (allowed > TOKENS) failures.push(`${allowed} calls were allowed; the bucket has ${TOKENS} tokens`);
  return failures;
}

/** Returns a message if calls got no decision. On a busy machine, some arrive only after their deadline. */
function burstDelays(result: AttackResult): string[] {
  const expired = expiredOf(result);
  return expired === 0 ? [] : [`${expired} of ${CALLS} calls got no decision`];
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
  delaysOf: burstDelays,
};
