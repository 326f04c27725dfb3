import { expect, test } from '@jest/globals';
import { parseLogin } from '../../../../src/storage/redis/connection/connection-options.js';

test.each([
  ['', {}],
  ['secret', { password: 'secret' }],
  ['user:secret', { username: 'user', password: 'secret' }],
  ['user:se:cret', { username: 'user', password: 'se:cret' }],
  [':secret', { username: '', password: 'secret' }],
])('parseLogin parses %j', (text, login) => {
  expect(parseLogin(text)).toEqual(login);
});
