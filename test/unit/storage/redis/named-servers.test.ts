import { describe, expect, test } from '@jest/globals';
import { parseSentinelUrl } from '../../../../src/storage/redis/connection/named-servers.js';

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
    [`m${',a:1'.repeat(33)}`, /more than 32 Sentinels/],
  ])('%j is refused', (url, says) => {
    expect(() => parseSentinelUrl(url)).toThrow(says);
  });

  test('an error does not quote an address that may contain a password', () => {
    expect(() => parseSentinelUrl('mymaster,:s3cret@a:1')).toThrow(
      expect.not.stringContaining('s3cret') as never,
    );
  });
});
