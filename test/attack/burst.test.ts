/* Sends many large requests at once, which cannot all be decided before their deadline. Each must get an answer. */
import { beforeAll, expect, test } from '@jest/globals';
import { startRedis } from '../support/redis/redis-server.js';
import { AttackedServer } from './attacked-server.js';
import { Attacker } from './attacker/attacker.js';
import { BURST_TOKENS } from './requests.js';
import { descriptor, request } from './wire.js';

/** weir reads only a part of a connection's calls in one turn, so the rest of a message may be read much later. */
const CONNECTIONS = 20;
const CALLS_PER_CONNECTION = 100;
const CALLS = CONNECTIONS * CALLS_PER_CONNECTION;
const DESCRIPTORS = 128;
/** Envoy's default. */
const TIMEOUT_MS = 20;
/** The attack ends when all calls are answered. */
const MAX_ATTACK_MS = 60_000;

let attacker: Attacker;
beforeAll(() => {
  attacker = new Attacker();
});

test.each([
  ['memory', false],
  ['Redis', true],
])('2,000 large requests at once, with buckets in %s', async (_store, hasRedis) => {
  const server = await AttackedServer.start(
    hasRedis ? { REDIS_URL: `127.0.0.1:${(await startRedis()).port}` } : {},
  );
  const message = request(
    'burst',
    descriptor(['shared', 'bucket']),
    ...Array.from({ length: DESCRIPTORS - 1 }, (_, n) => descriptor(['v', `${n}`])),
  );
  const attack = server.aim({
    ...{ kind: 'grpc', connections: CONNECTIONS, messages: [message] },
    ...{ streams: CALLS_PER_CONNECTION, calls: CALLS_PER_CONNECTION, timeoutMs: TIMEOUT_MS },
  });
  await server.askInnocently(attacker.attack({ attacks: [attack], ms: MAX_ATTACK_MS }));
  const { answers } = await attacker.finish();
  const { '0 OK': allowed = 0, '0 OVER_LIMIT': denied = 0 } = answers;
  expect({ answers, sum: allowed + denied }).toMatchObject({ sum: CALLS });
  expect(allowed).toBeLessThanOrEqual(BURST_TOKENS);
});
