import type { LookupAddress } from 'node:dns';
import { expect, test } from '@jest/globals';
import { sharedLookup } from '../../../../src/storage/redis/connection/shared-lookup.js';

type Found = readonly [code: string | undefined, address: string | LookupAddress[] | undefined];

/** Starts a lookup, and appends its result to `done`. */
function ask(name: string, done: Found[], all = false): Promise<Found> {
  return new Promise((resolve) => {
    sharedLookup(name, { all, family: 4 }, (error, address) => {
      const found: Found = [error?.code, address];
      done.push(found);
      resolve(found);
    });
  });
}

test('concurrent lookups of a name share one lookup and its result', async () => {
  const done: Found[] = [];
  const first = ask('localhost', done);
  const second = ask('localhost', done);
  // A reply in another format needs another lookup.
  const third = ask('localhost', [], true);
  await Promise.race([first, second]);
  expect(done).toHaveLength(2);
  expect(await first).toEqual([undefined, '127.0.0.1']);
  expect(await second).toEqual([undefined, '127.0.0.1']);
  expect(await third).toEqual([undefined, [{ address: '127.0.0.1', family: 4 }]]);
});

test('an unknown name is looked up again later', async () => {
  const done: Found[] = [];
  expect(await ask('no.such.name.invalid', done)).toMatchObject([
    expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
  ]);
  expect(await ask('no.such.name.invalid', done)).toMatchObject([
    expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
  ]);
  expect(done).toHaveLength(2);
});
