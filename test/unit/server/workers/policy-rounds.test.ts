import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { XdsUpdate } from '../../../../src/config/policy-provider.js';
import type { PlanBytes } from '../../../../src/config/read/read-domain.js';
import type { ToWorker } from '../../../../src/server/workers/messages.js';
import { PolicyRounds } from '../../../../src/server/workers/policy-rounds.js';
import { waitFor } from '../../../support/process/wait-for.js';

interface Worker {
  readonly id: number;
  loadedRound: number;
  policy: string;
}

let workers: Worker[];
let sent: ToWorker[];
let rows: ReadonlyMap<string, PlanBytes>;
let updates: readonly XdsUpdate[];
let warnings: object[];
let rounds: PolicyRounds | undefined;
beforeEach(() => {
  workers = [1, 2].map((id) => ({ id, loadedRound: 0, policy: 'v1' }));
  sent = [];
  rows = new Map();
  updates = [];
  warnings = [];
});
afterEach(() => rounds?.close());

function open(times: { readonly switchAfterMs?: number; readonly checkMs?: number } = {}): PolicyRounds {
  rounds = new PolicyRounds(
    {
      listening: () => workers,
      broadcast: (message) => sent.push(message),
      send: async (message) => void sent.push(message),
    },
    {
      current: () => ({ domains: new Map(), version: 'v1' }),
      handover: () => ({ kept: undefined, rows, updates }),
      sources: {
        get loadedRows() {
          return rows;
        },
        ages: () => new Map(),
        *failures() {},
      },
    },
    { warn: (about: object) => warnings.push(about) } as never,
    times,
  );
  return rounds;
}

/** Resolves when the workers are told to load the policies of a round. */
const untilTold = (round: number): Promise<unknown> =>
  waitFor('the load', () => sent.some((one) => one.kind === 'load' && one.round === round));
const kinds = (): readonly string[] => sent.map(({ kind }) => kind);
const LATER = 1_000_000;

describe('new policies take effect', () => {
  test('when all workers have loaded them', async () => {
    const opened = open({ switchAfterMs: LATER });
    let inEffect = false;
    const done = opened.run([]).then(() => {
      inEffect = true;
    });
    await untilTold(1);
    const [one, two] = workers as [Worker, Worker];
    one.loadedRound = 1;
    opened.loaded();
    await new Promise(setImmediate);
    expect([inEffect, kinds()]).toEqual([false, ['load']]);
    two.loadedRound = 1;
    opened.loaded();
    await done;
    expect(sent.at(-1)).toEqual({ kind: 'switch', round: 1 });
  });

  test('without a worker that has exited', async () => {
    const opened = open({ switchAfterMs: LATER });
    const done = opened.run([]);
    await untilTold(1);
    workers = [];
    opened.loaded();
    await done;
  });

  test('after some time without a worker that loads for too long, and one round after the other', async () => {
    const opened = open({ switchAfterMs: 1 });
    await Promise.all([opened.run([]), opened.run([])]);
    expect(kinds()).toEqual(['load', 'switch', 'load', 'switch']);
  });
});

test('rows that have changed are sent once, block by block', async () => {
  const [first, second, other] = [Uint8Array.of(1), Uint8Array.of(2), [Uint8Array.of(3)]];
  rows = new Map([['other', other]]);
  const opened = open({ switchAfterMs: 1 });
  rows = new Map([
    ['other', other],
    ['one', [first, second]],
  ]);
  await opened.run([]);
  expect(sent.slice(0, 2)).toEqual([
    { kind: 'rows', address: 'one', at: 0, bytes: first },
    { kind: 'rows', address: 'one', at: 1, bytes: second },
  ]);
  await opened.run([]);
  expect(kinds()).toEqual(['rows', 'rows', 'load', 'switch', 'load', 'switch']);
});

test('a worker that starts during a round gets its updates in place of those in effect', async () => {
  const update = (server: number, versionInfo: string): XdsUpdate => ({
    server,
    response: { versionInfo, resources: [], typeUrl: '', nonce: '' },
  });
  updates = [update(0, 'a1'), update(1, 'b1')];
  const opened = open({ switchAfterMs: LATER });
  const done = opened.run([update(0, 'a2')]);
  await untilTold(1);
  const versions = (): readonly string[] =>
    opened.handover().updates.map(({ server, response }) => `${server} ${response.versionInfo}`);
  expect(versions()).toEqual(['1 b1', '0 a2']);
  for (const worker of workers) worker.loadedRound = 1;
  opened.loaded();
  await done;
  expect(versions()).toEqual(['0 a1', '1 b1']);
});

test('a worker with other policies is told to load again, and logged if that does not help', async () => {
  const opened = open({ switchAfterMs: 1, checkMs: 5 });
  const [, two] = workers as [Worker, Worker];
  two.policy = 'v0';
  expect(opened.differing()).toEqual([two]);
  await waitFor('a line', () => warnings.length > 0);
  expect(warnings[0]).toEqual({ policy: 'v1', workers: [{ id: 2, policy: 'v0' }] });
  expect(kinds().slice(0, 2)).toEqual(['load', 'switch']);
});
