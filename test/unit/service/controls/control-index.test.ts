import { expect, test } from '@jest/globals';
import type { LiveControl } from '../../../../src/limiter/control.js';
import { EXCEEDED, MatchWork } from '../../../../src/policy/match-work.js';
import { sha256Hex } from '../../../../src/policy/names/sha256.js';
import { ControlIndex } from '../../../../src/service/controls/control-index.js';
import { MAX_KEY_SETS } from '../../../../src/service/controls/domain-controls.js';
import { control } from '../../../support/policy/controls.js';
import { entries } from '../../../support/policy/policies.js';

const none = { anew: false, set: [], ended: [], touched: [] };
const LOTS = 1_000_000;

let now = 0;
function indexOf(...set: LiveControl[]): ControlIndex {
  now = 0;
  const index = new ControlIndex(() => now);
  index.apply({ ...none, set });
  return index;
}
function find(index: ControlIndex, texts: readonly string[], steps = LOTS) {
  return index.of('d')?.find(entries(...texts), new MatchWork(steps));
}

test('a block wins over an exemption, and what ends last over the rest', () => {
  const allow = control('allow', ['a=1']);
  const short = control('block', ['a=1', 'b=2'], { endsMicros: 5 });
  const long = control('block', ['b=2'], { endsMicros: 9 });
  const index = indexOf(allow, short, long);
  expect(find(index, ['a=1'])).toBe(allow);
  expect(find(index, ['a=1', 'b=2'])).toBe(long);
  now = 5;
  expect(find(index, ['a=1', 'b=2'])).toBe(long);
  now = 9;
  expect(find(index, ['a=1', 'b=2'])).toBe(allow);
  expect(find(index, ['b=2'])).toBeUndefined();
});

test('follows changes, and is empty again at their end', () => {
  const one = control('block', ['a=1', 'b=2']);
  const two = control('allow', ['a=1', 'b=3']);
  const index = indexOf(one, two);
  expect([index.count('block'), index.count('allow'), index.blocks('d')]).toEqual([1, 1, true]);
  const longer = { ...one, reason: 'again' };
  index.apply({ ...none, set: [longer] });
  expect(find(index, ['a=1', 'b=2'])).toBe(longer);
  expect(index.count('block')).toBe(1);
  index.apply({ ...none, ended: [one.id, 'unknown'] });
  expect(find(index, ['a=1', 'b=2'])).toBeUndefined();
  expect(find(index, ['a=1', 'b=3'])).toBe(two);
  expect(index.blocks('d')).toBe(false);
  index.apply({ ...none, ended: [two.id] });
  expect(index.of('d')).toBeUndefined();
  index.apply({ ...none, set: [one] });
  index.apply({ ...none, anew: true, set: [two] });
  expect([find(index, ['a=1', 'b=2']), index.count('block'), index.count('allow')]).toEqual([
    undefined,
    0,
    1,
  ]);
});

test('a secret is compared by its digest, whatever the policy in force takes for one', () => {
  const secret = control('block', ['authorization=Bearer 1']);
  const plain = {
    ...control('block', ['x=1']),
    identity: [{ key: 'authorization', value: 'Bearer 2', secret: false }],
  };
  expect(secret.identity[0]?.value).toBe(sha256Hex('Bearer 1'));
  const index = indexOf(secret, plain);
  expect(find(index, ['authorization=Bearer 1'])).toBe(secret);
  expect(find(index, ['authorization=Bearer 2'])).toBe(plain);
  expect(find(index, [`authorization=${sha256Hex('Bearer 1')}`])).toBeUndefined();
});

test('a domain has room for so many sets of keys, and for any number of values', () => {
  const index = indexOf(...Array.from({ length: MAX_KEY_SETS }, (_, n) => control('block', [`k${n}=v`])));
  expect(index.hasRoomFor('d', control('allow', ['k0=other']).identity)).toBe(true);
  expect(index.hasRoomFor('d', control('allow', ['k0=v', 'k1=v']).identity)).toBe(false);
  expect(index.hasRoomFor('elsewhere', control('allow', ['new=v']).identity)).toBe(true);
});

/** Steps that a look takes. */
function cost(index: ControlIndex, texts: readonly string[]): number {
  const work = new MatchWork(LOTS);
  index.of('d')?.find(entries(...texts), work);
  return LOTS - work.left;
}

test('what it costs to find one does not grow with their number', () => {
  const grid = (edge: number): LiveControl[] =>
    Array.from({ length: edge * edge }, (_, n) =>
      control('block', [`a=${n % edge}`, `b=${Math.floor(n / edge)}`, 'c=1']),
    );
  const asked = ['a=0', 'b=0', 'c=2', 'd=3'];
  const few = cost(indexOf(...grid(2)), asked);
  const many = indexOf(...grid(100));
  expect(cost(many, asked)).toBe(few);
  expect(few).toBeLessThan(200);
  expect(find(many, ['a=99', 'b=99', 'c=1'])).toBeDefined();
});

test('nor does a descriptor made to be costly take more than it may', () => {
  const index = indexOf(
    ...Array.from({ length: 10_000 }, (_, n) =>
      control('block', [`a=${n % 100}`, `b=${Math.floor(n / 100)}`, 'c=1']),
    ),
  );
  const texts = Array.from({ length: 100 }, (_, n) => [`a=${n}`, `b=${n}`, 'c=2']).flat();
  expect(find(index, texts, 20_000)).toBe(EXCEEDED);
  expect(cost(index, texts)).toBeLessThan(250_000);
});

test('a secret too long to be digested with the work that is left is told so', () => {
  const index = indexOf(control('block', ['api_key=x']));
  expect(find(index, [`api_key=${'v'.repeat(100_000)}`], 20_000)).toBe(EXCEEDED);
  expect(find(index, [`api_key=${'v'.repeat(1000)}`], 20_000)).toBeUndefined();
});
