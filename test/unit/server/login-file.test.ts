import { expect, test } from '@jest/globals';
import { LoginFile } from '../../../src/server/store/redis-options.js';
import type { RedisLogin } from '../../../src/storage/redis/connection/connection-options.js';
import { TempDir } from '../../support/process/temp-dir.js';

const folder = new TempDir();

test('connections get a new login even if a new connection reads it first', async () => {
  const path = folder.write('login', 'first');
  const source = new LoginFile('REDIS_AUTH_FILE', path);
  const logins: RedisLogin[] = [];
  source.follow({ renewed: (login) => logins.push(login), failed: () => {} });
  folder.write('login', 'second');
  expect(await source.login()).toEqual({ password: 'second' });
  expect(logins).toEqual([{ password: 'second' }]);
  expect(await source.login()).toEqual({ password: 'second' });
  expect(logins).toHaveLength(1);
  source.close();
});
