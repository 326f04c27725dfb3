import { expect, test } from '@jest/globals';
import { showsColours } from '../../../src/runtime/texts.js';

test.each([
  ['a terminal', true, {}, true],
  ['a terminal with TERM', true, { TERM: 'xterm-256color' }, true],
  ['an empty NO_COLOR', true, { NO_COLOR: '' }, true],
  ['NO_COLOR', true, { NO_COLOR: '1' }, false],
  ['NO_COLOR=0, which also disables colours', true, { NO_COLOR: '0' }, false],
  ['a terminal without colours', true, { TERM: 'dumb' }, false],
  ['output that is not a terminal', false, {}, false],
])('colours: %s', (_name, terminal, environment, shown) => {
  expect(showsColours(terminal, environment)).toBe(shown);
});
