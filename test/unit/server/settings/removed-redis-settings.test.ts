/* Tests the variables of Redis that the second edition removed (src/runtime/removed-names.ts). */
import { expect, test } from '@jest/globals';
import { readSettings } from '../../../../src/server/settings/read-settings.js';
import { cases } from '../../../support/assert/cases.js';

// The beginning of each message is a regular expression.
const read = (name: string, value: string) =>
  readSettings({
    REDIS_URL: 'localhost:6379',
    REDIS_PERSECOND: 'true',
    REDIS_PERSECOND_URL: 'a',
    [name]: value,
  });

test.each(cases`
  REDIS_TYPE => PROXY => weir no longer supports sharding proxies \\(PROXY\\); use Redis Cluster
  REDIS_PERSECOND_TYPE => proxy => .*PROXY
  REDIS_CLOCK => caller => weir always uses Redis's clock .*; unset this variable, and use a Redis
  REDIS_AUTH_COMMAND => login geheim
    .*; let a job or a sidecar .* REDIS_AUTH_FILE to this file[^,]*, .* changes$
  REDIS_PERSECOND_AUTH_COMMAND => login => .* set REDIS_PERSECOND_AUTH_FILE to
  REDIS_CLOCK => servers => ${''}
`)('%s=%s ends the start', (name, value, error) => {
  const errors = [expect.stringMatching(new RegExp(`^${name}: ${error}`))];
  expect(read(name, value)).toMatchObject({ ok: false, errors });
});

test.each(cases`
  REDIS_CLOCK => Auto => weir always uses Redis's clock; unset this variable$
  REDIS_AUTH_REFRESH => 1m => weir reads REDIS_AUTH_FILE again whenever it changes; unset
  REDIS_CLOCK => server => weir always uses Redis's clock; unset this variable$
`)('%s=%s is ignored with a warning', (name, value, note) => {
  const notes = [expect.stringMatching(new RegExp(`^${name}: ${note}`))];
  expect(read(name, value)).toMatchObject({ ok: true, notes });
});
