/* Bounds the memory of a single call: at most 64 MB more than before, whatever the call contains. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AttackedServer } from './attacked-server.js';
import type { Attack } from './attacker/attack.js';
import { Attacker } from './attacker/attacker.js';
import { REQUEST_ATTACKS } from './requests.js';

const MAX_BYTES = 64e6;
const ATTACK_MS = 20_000;
const MB = 1e6;

const table: string[] = [];

let attacker: Attacker;
let server: AttackedServer;
beforeAll(async () => {
  attacker = new Attacker();
  server = await AttackedServer.start();
});
afterAll(() => {
  process.stdout.write(`\nMemory increase in MB during one call, and the answers\n${table.join('\n')}\n`);
});

/** Returns the attack with a single call. */
function once(attack: Attack): Attack {
  if (attack.kind === 'frames') throw new Error('a frame attack is not a single call');
  const limited = attack.kind === 'grpc' ? { ...attack, streams: 1, calls: 1 } : { ...attack, batches: 1 };
  return { ...limited, connections: 1 };
}

test.each(Object.entries(REQUEST_ATTACKS))('%s', async (name, attack) => {
  if (!server.isAlive()) server = await AttackedServer.start();
  const before = await server.settle();
  await attacker.attack({ attacks: [server.aim(once(attack))], ms: ATTACK_MS });
  const { answers } = await attacker.finish();
  const peak = server.peak();
  if (peak === undefined) throw new Error('weir has ended');
  const more = peak - before;
  table.push(`${(more / MB).toFixed(0).padStart(5)}  ${name}  ${JSON.stringify(answers)}`);
  // A request above a bound is denied without a decision. The limits would allow all others.
  const isAbove = name.startsWith('above a bound');
  const expected = attack.kind === 'http' ? [':200', ':429'] : ['0 OK', '0 OVER_LIMIT'];
  expect(Object.keys(answers)).toEqual([expected[isAbove ? 1 : 0]]);
  expect(more).toBeLessThan(MAX_BYTES);
});
