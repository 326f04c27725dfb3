import { expect, test } from '@jest/globals';
import { showsColours } from '../../src/colours.js';

test.each([
  ['a terminal', true, {}, true],
  ['a terminal of a name', true, { TERM: 'xterm-256color' }, true],
  ['an empty NO_COLOR', true, { NO_COLOR: '' }, true],
  ['NO_COLOR', true, { NO_COLOR: '1' }, false],
  ['NO_COLOR that says 0, which counts, too', true, { NO_COLOR: '0' }, false],
  ['a terminal without colours', true, { TERM: 'dumb' }, false],
  ['no terminal', false, {}, false],
])('colours: %s', (_name, terminal, environment, shown) => {
  expect(showsColours(terminal, environment)).toBe(shown);
});
