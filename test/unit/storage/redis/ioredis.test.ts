import { setFlagsFromString } from 'node:v8';
import { expect, test } from '@jest/globals';

/** Returns whether V8 finds the methods of strings directly. */
function areStringMethodsFast(): boolean {
  setFlagsFromString('--allow-natives-syntax');
  try {
    return new Function('return %HasFastProperties(String.prototype)')() as boolean;
  } finally {
    setFlagsFromString('--no-allow-natives-syntax');
  }
}

test('the methods of strings stay fast after ioredis is loaded', () => {
  require('ioredis');
  expect(areStringMethodsFast()).toBe(false);
  require('../../../../src/runtime/ioredis.js');
  expect(areStringMethodsFast()).toBe(true);
});
