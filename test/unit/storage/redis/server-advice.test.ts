import { expect, test } from '@jest/globals';
import { serverAdvice } from '../../../../src/storage/redis/connection/server-advice.js';

const info = (version: string, policy: string, maxmemory: number) =>
  `# Server\r\nredis_version:${version}\r\n# Memory\r\nmaxmemory:${maxmemory}\r\nmaxmemory_policy:${policy}\r\n`;

test.each([
  ['7.0.15', 'noeviction', 0],
  ['6.2.0', 'noeviction', 1 << 30],
  ['10.0.0', 'allkeys-lru', 0],
])('Redis %s, %s, maxmemory %d: no warning', (version, policy, maxmemory) => {
  expect(serverAdvice(info(version, policy, maxmemory))).toEqual([]);
});

test.each(['allkeys-lru', 'volatile-ttl'])('warns of %s', (policy) => {
  const [advice, ...more] = serverAdvice(info('7.0.15', policy, 1 << 30));
  expect(more).toEqual([]);
  expect(advice).toContain(`maxmemory-policy ${policy}`);
  expect(advice).toContain('too early; set maxmemory-policy to noeviction');
});

test.each(['6.0.16', '5.0.7'])('warns of Redis %s', (version) => {
  expect(serverAdvice(info(version, 'noeviction', 0))).toEqual([
    `Redis ${version} is too old for weir; upgrade to Redis 6.2 or later`,
  ]);
});

test('a server that does not report its settings causes no warning', () => {
  expect(serverAdvice('')).toEqual([]);
});
