/* The cost of the index. property/control-index.property.test.ts tests which control it finds. */
import { expect, test } from '@jest/globals';
import type { LiveControl } from '../../../../src/limiter/control.js';
import { EXCEEDED, MatchWork } from '../../../../src/policy/match-work.js';
import { ControlIndex } from '../../../../src/service/controls/control-index.js';
import { MAX_KEY_SETS } from '../../../../src/service/controls/domain-controls.js';
import { control } from '../../../support/policy/controls.js';
import { entries } from '../../../support/policy/policies.js';

const none = { isReset: false, set: [], ended: [], granted: [] };
const UNLIMITED_STEPS = 1_000_000;

function indexOf(...set: LiveControl[]): ControlIndex {
  const index = new ControlIndex(() => 0);
  index.apply({ ...none, set });
  return index;
}
function find(index: ControlIndex, texts: readonly string[], steps = UNLIMITED_STEPS) {
  return index.of('d')?.find(entries(...texts), new MatchWork(steps));
}

test('a domain has space for a limited number of key sets, and for any number of values', () => {
  const index = indexOf(...Array.from({ length: MAX_KEY_SETS }, (_, n) => control('block', [`k${n}=v`])));
  expect(index.hasRoomFor('d', control('allow', ['k0=other']).identity)).toBe(true);
  expect(index.hasRoomFor('d', control('allow', ['k0=v', 'k1=v']).identity)).toBe(false);
  expect(index.hasRoomFor('elsewhere', control('allow', ['new=v']).identity)).toBe(true);
});

/** Returns the steps of a lookup. */
function cost(index: ControlIndex, texts: readonly string[]): number {
  const work = new MatchWork(UNLIMITED_STEPS);
  index.of('d')?.find(entries(...texts), work);
  return UNLIMITED_STEPS - work.remaining;
}

test('the cost of a lookup does not grow with the number of controls', () => {
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

test('a descriptor that is designed to be costly stays within the bound', () => {
  const index = indexOf(
    ...Array.from({ length: 10_000 }, (_, n) =>
      control('block', [`a=${n % 100}`, `b=${Math.floor(n / 100)}`, 'c=1']),
    ),
  );
  const texts = Array.from({ length: 100 }, (_, n) => [`a=${n}`, `b=${n}`, 'c=2']).flat();
  expect(find(index, texts, 20_000)).toBe(EXCEEDED);
  expect(cost(index, texts)).toBeLessThan(250_000);
});

test('a secret that is too long to be digested within the budget is reported', () => {
  const index = indexOf(control('block', ['api_key=x']));
  expect(find(index, [`api_key=${'v'.repeat(100_000)}`], 20_000)).toBe(EXCEEDED);
  expect(find(index, [`api_key=${'v'.repeat(1000)}`], 20_000)).toBeUndefined();
});
