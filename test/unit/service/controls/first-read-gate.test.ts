import { describe, expect, test } from '@jest/globals';
import { createClientCodec } from '../../../../src/codec/client-codec.js';
import { CODE } from '../../../../src/codec/messages.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../../src/service/caller.js';
import { DECISIONS_PER_TURN, FirstReadGate } from '../../../../src/service/controls/first-read-gate.js';
import { Refusal } from '../../../../src/service/refusal.js';
import type { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { control } from '../../../support/controls/controls.js';
import { Decider, descriptor } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';

const POLICY = `
domain: d
descriptors:
  - { key: error, rate_limit: { unit: hour, requests_per_unit: 9 } }
  - { key: allow, rate_limit: { on_store_failure: allow, unit: hour, requests_per_unit: 9 } }
  - { key: slot, rate_limit: { concurrency: { max: 1 } } }
  - key: oldest
    rate_limit: { on_store_failure: allow, unit: hour, requests_per_unit: 9, hold: { amount: 1, pair: oldest } }
  - { key: deny, rate_limit: { on_store_failure: deny, unit: hour, requests_per_unit: 9 } }
`;

const codec = createClientCodec();

/** A gate in front of a decider; `end` ends the first read. */
function gated() {
  const decider = new Decider(POLICY);
  let resolve = (): void => {};
  const firstRead: { awaited: Promise<void> | undefined } = {
    awaited: new Promise((done) => {
      resolve = done;
    }),
  };
  const gate = new FirstReadGate(firstRead, decider.options);
  const end = (): void => {
    firstRead.awaited = undefined;
    resolve();
  };
  const ask = async (key: string, patienceMicros = Infinity, value = 'x'): Promise<number | Refusal> => {
    const descriptors = [descriptor([`${key}=${value}`])];
    const message = codec.encodeRequest({ domain: 'd', descriptors, hitsAddend: 0 });
    const deadlineMicros = decider.clock.monotonicMicros() + patienceMicros;
    const answered = gate.handle(message, { ...CALLER_WITHOUT_DEADLINE, deadlineMicros });
    message.fill(0);
    const answer = await answered;
    return answer instanceof Refusal ? answer : codec.decodeResponse(answer).overallCode;
  };
  return { decider, gate, end, ask };
}

describe('before the first read of controls', () => {
  test('a call waits for the read, and is blocked', async () => {
    const { decider, end, ask } = gated();
    const answer = ask('allow');
    const made = control('x', { domain: 'd', identity: [{ key: 'allow', value: 'x', secret: false }] });
    decider.controls.apply({
      ...{ isReset: false, ended: [], granted: [] },
      set: [{ ...made, expiresAtMicros: decider.clock.monotonicMicros() + made.durationMicros }],
    });
    end();
    expect(await answer).toBe(CODE.OVER_LIMIT);
  });

  test('a call that expires first is decided by on_store_failure', async () => {
    const { decider, ask } = gated();
    const answers = await Promise.all(['error', 'allow', 'deny'].map((key) => ask(key, 10_000)));
    expect(answers).toEqual([expect.any(Refusal), CODE.OK, CODE.OVER_LIMIT]);
    expect(decider.observer.told.filter((told) => told === 'store timeout')).toHaveLength(3);
  });

  test('ends of holds reach the store after the read', async () => {
    const { decider, end, ask } = gated();
    const held = () => (decider.options.store as MemoryStore).holdCount;
    const [started] = ['slot', 'oldest'].map((key) =>
      decider.answer([descriptor([`${key}=x`], { hitsAddend: key === 'slot' ? 1 : 0 })]),
    );
    expect(held()).toBe(2);
    await ask('hold', 10_000, String(started?.dynamicMetadata?.['hold']));
    await ask('oldest', 10_000);
    expect(held()).toBe(2);
    end();
    await waitFor('the ends', () => held() === 0);
  });

  test('calls that have waited are decided a few in each turn of the event loop', async () => {
    const { end, ask } = gated();
    let answered = 0;
    const all = Array.from({ length: 3 * DECISIONS_PER_TURN }, () => ask('allow').then(() => answered++));
    end();
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBeLessThanOrEqual(2 * DECISIONS_PER_TURN);
    await Promise.all(all);
    expect(answered).toBe(3 * DECISIONS_PER_TURN);
  });

  test('a decoded request waits as well', async () => {
    const { gate, end } = gated();
    const answered = gate.decide({ domain: 'd', descriptors: [descriptor(['allow=x'])], hitsAddend: 0 });
    expect(answered).toBeInstanceOf(Promise);
    end();
    expect(await answered).toMatchObject({ overallCode: CODE.OK });
  });

  test('calls do not wait after the read', () => {
    const { gate, end } = gated();
    end();
    const descriptors = [descriptor(['allow=x'])];
    const message = codec.encodeRequest({ domain: 'd', descriptors, hitsAddend: 0 });
    expect(gate.handle(message)).toBeInstanceOf(Uint8Array);
  });
});
