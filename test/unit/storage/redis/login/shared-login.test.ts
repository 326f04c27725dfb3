import { expect, test } from '@jest/globals';
import { SharedLogin } from '../../../../../src/storage/redis/connection/login/shared-login.js';
import type { LoginListeners } from '../../../../../src/storage/redis/connection/login-source.js';

test('queries of a cluster request a new login only if none is known, or if the last one was refused', async () => {
  const asked: boolean[] = [];
  let listeners: LoginListeners | undefined;
  const shared = new SharedLogin({
    async login(refused) {
      asked.push(refused);
      return { password: `p${asked.length}` };
    },
    follow: (followers) => {
      listeners = followers;
    },
    close: () => {},
  });
  expect(await shared.login(false)).toEqual({ password: 'p1' });
  expect(await shared.login(false)).toEqual({ password: 'p1' });
  expect(asked).toEqual([false]);
  listeners?.renewed({ password: 'renewed' });
  expect(await shared.login(false)).toEqual({ password: 'renewed' });
  expect(await shared.login(true)).toEqual({ password: 'p2' });
  expect(asked).toEqual([false, true]);
});
