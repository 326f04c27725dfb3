/* Bounds the memory of a single call: at most 64 MB more than before, whatever the call contains. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Attack } from '../stall/attack/attack.js';
import { Attacker } from '../stall/attack/attacker.js';
import { PATH_CASES, VALUE_CASES } from '../stall/cases/matchers.js';
import { JSON_CASES, MESSAGE_CASES } from '../stall/cases/messages.js';
import { MemoryServer } from './memory-server.js';

const MAX_BYTES = 64e6;
const ATTACK_MS = 20_000;
const MB = 1e6;

const cases = [...PATH_CASES, ...VALUE_CASES, ...MESSAGE_CASES, ...JSON_CASES];
const table: string[] = [];

let attacker: Attacker;
beforeAll(() => {
  attacker = new Attacker();
});
afterAll(async () => {
  await attacker.close();
  process.stdout.write(`\nMemory increase in MB during one call, and the answers\n${table.join('\n')}\n`);
});

/** Returns the attack with a single call. */
function once(attack: Attack): Attack {
  if (attack.kind === 'frames') throw new Error('a frame attack is not a single call');
  return attack.kind === 'grpc' ? { ...attack, streams: 1, calls: 1 } : { ...attack, batches: 1 };
}

let server: MemoryServer | undefined;
afterAll(() => server?.stop());

test.each(cases.map((one) => [one.name, one.attack] as const))('%s', async (name, attack) => {
  if (server === undefined) {
    server = await MemoryServer.start();
    expect(await server.askInnocently()).toBe(0);
  }
  const { weir } = server;
  const order = once((attack as () => Attack)());
  const port = order.kind === 'http' ? weir.httpPort : weir.grpcPort;
  const before = await server.settle();
  await attacker.attack({ attack: order, port, connections: 1, ms: ATTACK_MS });
  const { answers } = await attacker.finish();
  const peak = server.peak();
  if (peak === undefined || !server.isAlive()) {
    await server.stop();
    server = undefined;
    throw new Error(`weir has ended`);
  }
  const more = peak - before;
  table.push(`${(more / MB).toFixed(0).padStart(5)}  ${name}  ${JSON.stringify(answers)}`);
  expect(Object.keys(answers)).toHaveLength(1);
  expect(more).toBeLessThan(MAX_BYTES);
});
