/* Tests the variables of Redis that the second edition removed (src/runtime/removed-names.ts). */
import { expect, test } from '@jest/globals';
import { readSettings } from '../../../../src/server/settings/read-settings.js';

const REDIS = { REDIS_URL: 'localhost:6379' };

test.each<[Record<string, string>, RegExp]>([
  [
    { REDIS_TYPE: 'PROXY' },
    /^REDIS_TYPE: weir no longer supports sharding proxies \(PROXY\); use Redis Cluster/,
  ],
  [
    { REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'a', REDIS_PERSECOND_TYPE: 'proxy' },
    /^REDIS_PERSECOND_TYPE: .*PROXY/,
  ],
  [
    { REDIS_CLOCK: 'caller' },
    /^REDIS_CLOCK: weir always uses Redis's clock .*; unset this variable, and use a Redis/,
  ],
  [
    { REDIS_AUTH_COMMAND: 'login geheim' },
    /^REDIS_AUTH_COMMAND: .*; let a job or a sidecar .* REDIS_AUTH_FILE to this file[^,]*, .* changes$/,
  ],
  [
    { REDIS_PERSECOND_AUTH_COMMAND: 'login' },
    /^REDIS_PERSECOND_AUTH_COMMAND: .* set REDIS_PERSECOND_AUTH_FILE to/,
  ],
  [{ REDIS_CLOCK: 'servers' }, /^REDIS_CLOCK: /],
])('%j ends the start', (environment, error) => {
  const read = readSettings({ ...REDIS, ...environment });
  expect(read).toMatchObject({ ok: false, errors: [expect.stringMatching(error)] });
});

test.each<[Record<string, string>, RegExp]>([
  [{ REDIS_CLOCK: 'Auto' }, /^REDIS_CLOCK: weir always uses Redis's clock; unset this variable$/],
  [
    { REDIS_AUTH_REFRESH: '1m' },
    /^REDIS_AUTH_REFRESH: weir reads REDIS_AUTH_FILE again whenever it changes; unset/,
  ],
  [{ REDIS_CLOCK: 'server' }, /^REDIS_CLOCK: weir always uses Redis's clock; unset this variable$/],
])('%j is ignored with a warning', (environment, note) => {
  expect(readSettings({ ...REDIS, ...environment })).toMatchObject({
    ok: true,
    notes: [expect.stringMatching(note)],
  });
});
