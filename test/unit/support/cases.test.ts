import { expect, test } from '@jest/globals';
import { cases } from '../../support/assert/cases.js';

test('cells are on one line or below each other, and inserted values stay whole', () => {
  const text = 'one => two\n  three';
  expect(cases`
    a => b
    // a comment
    ${text}: c
      d: ${'`'}\n\`\u{1F600}
        e
    f
  `).toEqual([['a', 'b'], [`${text}: c`, 'd: `\n`😀 e'], ['f']]);
});
