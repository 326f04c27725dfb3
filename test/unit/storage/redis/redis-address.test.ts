import { describe, expect, test } from '@jest/globals';
import { parseRedisUrl, parseSentinelUrl } from '../../../../src/storage/redis/connection/redis-address.js';

describe('parseRedisUrl reads', () => {
  test.each([
    ['localhost:6380', { host: 'localhost', port: 6380, tls: false, db: 0 }, 'redis://localhost:6380'],
    ['redis', { host: 'redis', port: 6379, tls: false, db: 0 }, 'redis://redis:6379'],
    ['[::1]:6379', { host: '::1', port: 6379, tls: false, db: 0 }, 'redis://[::1]:6379'],
    ['/run/redis.sock', { path: '/run/redis.sock', tls: false, db: 0 }, 'unix:///run/redis.sock'],
    [
      'redis://user:p%40ss@10.0.0.1:7000/3',
      { host: '10.0.0.1', port: 7000, tls: false, db: 3, username: 'user', password: 'p@ss' },
      'redis://10.0.0.1:7000/3',
    ],
    ['redis://:secret@h', { host: 'h', port: 6379, tls: false, db: 0, password: 'secret' }, 'redis://h:6379'],
    ['redis://:p@ss@h:1', { host: 'h', port: 1, tls: false, db: 0, password: 'p@ss' }, 'redis://h:1'],
    ['redis://h/?db=4', { host: 'h', port: 6379, tls: false, db: 4 }, 'redis://h:6379/4'],
    [
      'rediss://[fd00::1]:6390/1',
      { host: 'fd00::1', port: 6390, tls: true, db: 1 },
      'rediss://[fd00::1]:6390/1',
    ],
    ['unix:///run/r.sock?db=2', { path: '/run/r.sock', tls: false, db: 2 }, 'unix:///run/r.sock?db=2'],
    [
      'unix://u:p@/run/r.sock',
      { path: '/run/r.sock', tls: false, db: 0, username: 'u', password: 'p' },
      'unix:///run/r.sock',
    ],
  ])('%s', (url, expected, redactedAddress) => {
    expect(parseRedisUrl(url)).toEqual({ ...expected, redactedAddress });
  });

  test.each([
    ['run/redis.sock', 'unix', { path: 'run/redis.sock' }],
    ['redis:6379', 'unix', { path: 'redis:6379' }],
    ['unix:///run/r.sock?db=2', 'unix', { path: '/run/r.sock', db: 2 }],
    ['redis:6380', 'tcp', { host: 'redis', port: 6380 }],
    ['redis://u:p@redis:6380', 'tcp', { host: 'redis', port: 6380, username: 'u', password: 'p' }],
  ] as const)('%s as %s', (url, socketType, expected) => {
    expect(parseRedisUrl(url, {}, socketType)).toMatchObject(expected);
  });

  test('user and password as parameters, unless the URL has a login before the host', () => {
    for (const url of [
      'redis://h?username=u&password=p%40ss&db=3',
      'redis://h:6379/3?username=u&password=p@ss',
    ]) {
      expect(parseRedisUrl(url)).toMatchObject({ host: 'h', username: 'u', password: 'p@ss', db: 3 });
    }
    expect(parseRedisUrl('redis://a:b@h?username=u&password=p')).toMatchObject({
      username: 'a',
      password: 'b',
    });
  });

  test('settings in addition to the URL', () => {
    const overrides = { password: 'b', username: 'u', tls: true };
    expect(parseRedisUrl('redis://:a@h:1/1', overrides)).toEqual({
      ...overrides,
      host: 'h',
      port: 1,
      db: 1,
      redactedAddress: 'rediss://h:1/1',
    });
  });
});

describe('parseRedisUrl refuses', () => {
  test.each([
    ['', /empty/],
    ['http://h', /unknown scheme "http:\/\/"/],
    ['user:secret@h:6379', /is invalid; use host:port/],
    ['redis://:secret@', /URL|no host/],
    ['redis://:secret@h:99999', /not a valid URL/],
    ['h:0', /port must be from 1 to 65535/],
    ['redis://:secret@h/x', /database must be a whole number/],
    ['redis://:secret@h?timeout=1', /unknown parameter "timeout"/],
    ['redis://:secret/@h:1', /percent-encode/],
    ['redis://:p@s/secret@h:1', /the user or the password .*; percent-encode this character \(\/ is %2F/],
    ['redis://:secret@s/w0rd@h:1/2', /percent-encode/],
    ['redis://:sec?ret@h:1', /percent-encode/],
    ['redis://user:sec?ret@h:1', /percent-encode/],
    ['redis://user:12?secret@h:1', /percent-encode|unknown parameter after the "\?"/],
    ['redis://user:12?secret=x@h:1', /unknown parameter after the "\?"/],
    ['redis://:sec#ret@h', /percent-encode/],
    ['rediss://:sec,ret@h:1', /percent-encode/],
    ['redis://:secret%zz@h', /"%"/],
    ['a:1,b:2', /the value contains several addresses; for a Redis Cluster/],
    ['unix://', /requires a path/],
    ['unix://run/r.sock', /requires a path/],
    ['unix://u:secret#x@/run/r.sock', /not a valid URL/],
    ['::1', /\[::1\]/],
  ])('%s', (url, message) => {
    expect(() => parseRedisUrl(url)).toThrow(message);
    let text = '';
    try {
      parseRedisUrl(url);
    } catch (error) {
      text = String(error);
    }
    expect(text).not.toContain('secret');
    expect(text).not.toContain('ret@');
  });

  test.each([
    ['redis://h:1', 'unix', /redis:\/\/ URL is not a Unix domain socket/],
    ['rediss://h:1', 'unix', /rediss:\/\/ URL/],
    ['/run/r.sock', 'tcp', /is a Unix domain socket.*use host:port/],
    ['unix:///run/r.sock', 'tcp', /is a Unix domain socket/],
    ['', 'unix', /empty/],
  ] as const)('%s as %s', (url, socketType, message) => {
    expect(() => parseRedisUrl(url, {}, socketType)).toThrow(message);
  });

  test('TLS on a socket', () => {
    expect(() => parseRedisUrl('/run/r.sock', { tls: true })).toThrow(/does not support TLS/);
  });
});

describe('REDIS_URL with REDIS_TYPE=SENTINEL', () => {
  test('contains the name of the master and the addresses of the Sentinels', () => {
    expect(parseSentinelUrl(' mymaster, a:1 ,b,[::1]:3 ', { password: 'p', tls: true })).toEqual({
      sentinel: {
        masterName: 'mymaster',
        sentinels: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26379 },
          { host: '::1', port: 3 },
        ],
      },
      tls: true,
      password: 'p',
      db: 0,
      redactedAddress: 'mymaster (Sentinels a:1, b:26379, [::1]:3)',
    });
  });

  test.each([
    ['mymaster', /a Sentinel address must contain a Sentinel after the name/],
    ['a:26379,b:26379', /must begin with the name of the master/],
    [',b:26379', /must begin with the name of the master/],
    ['mymaster,', /number 1 after the name of the master, is not a valid address/],
    ['mymaster,a:1,b c', /"b c", Sentinel number 2/],
    ['mymaster,a:0', /the port must be from 1 to 65535/],
    ['mymaster,a:x', /is not a valid address/],
    ['mymaster,redis://a:1', /must not contain URLs/],
    [
      'mymaster,:pw@a:1',
      /and set REDIS_AUTH to the login for Redis and REDIS_SENTINEL_AUTH to the login for the Sentinels/,
    ],
  ])('%j is refused', (url, says) => {
    expect(() => parseSentinelUrl(url)).toThrow(says);
  });

  test('an error does not quote an address that may contain a password', () => {
    expect(() => parseSentinelUrl('mymaster,:s3cret@a:1')).toThrow(
      expect.not.stringContaining('s3cret') as never,
    );
  });
});
