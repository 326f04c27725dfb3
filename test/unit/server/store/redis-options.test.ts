import { describe, expect, test } from '@jest/globals';
import { MAX_TIMER_MS } from '../../../../src/limiter/clock.js';
import { StartError } from '../../../../src/server/start-error.js';
import { mainRedis } from '../../../../src/server/store/redis-options.js';
import { TempDir } from '../../../support/process/temp-dir.js';
import { CertificateAuthority } from '../../../support/tls/certificates.js';
import { settingsOf } from '../../../support/weir/settings.js';

function startupOf(environment: Record<string, string>) {
  const settings = settingsOf({ REDIS_URL: 'redis:6379', ...environment });
  return mainRedis(settings).startup;
}

test('pauses before the first connection follow the settings, and fit into a timer', () => {
  expect(
    startupOf({ REDIS_STARTUP_INITIAL_INTERVAL: '1s', REDIS_STARTUP_MAX_INTERVAL: '30s' }),
  ).toMatchObject({ initialMs: 1000, maxMs: 30_000 });
  // Node.js changes the duration of a timer that is too long to one millisecond, so that attempts to reach Redis would
  // never pause.
  expect(
    startupOf({ REDIS_STARTUP_INITIAL_INTERVAL: '2000000h', REDIS_STARTUP_MAX_INTERVAL: '2000000h' }),
  ).toMatchObject({ initialMs: MAX_TIMER_MS, maxMs: MAX_TIMER_MS });
  expect(startupOf({ REDIS_STARTUP_INITIAL_INTERVAL: '2000000h' })).toMatchObject({
    maxMs: MAX_TIMER_MS,
  });
});

describe('files for TLS with Redis that cannot be used', () => {
  const authority = new CertificateAuthority();
  const [one, other] = [authority.issue('DNS:a'), authority.issue('DNS:b')];
  const folder = new TempDir();
  const [cert, key] = [folder.write('cert', one.cert), folder.write('key', one.key)];
  const [otherKey, text] = [folder.write('other-key', other.key), folder.write('text', 'geheim')];

  test.each<[environment: Record<string, string>, line: string]>([
    [
      { REDIS_TLS_CACERT: text },
      `REDIS_TLS_CACERT: ${text} is not a PEM file with a certificate; specify a PEM file that contains a certificate`,
    ],
    [
      { REDIS_TLS_CLIENT_CERT: text, REDIS_TLS_CLIENT_KEY: key },
      `REDIS_TLS_CLIENT_CERT: ${text} is not a PEM file with a certificate; specify a PEM file that ` +
        'contains a certificate',
    ],
    [
      { REDIS_TLS_CLIENT_CERT: cert, REDIS_TLS_CLIENT_KEY: text },
      `REDIS_TLS_CLIENT_KEY: ${text} is not a PEM file with a key, or the key has a passphrase; specify ` +
        'a key without a passphrase',
    ],
    [
      { REDIS_TLS_CLIENT_CERT: cert, REDIS_TLS_CLIENT_KEY: otherKey },
      `REDIS_TLS_CLIENT_KEY: ${otherKey} does not belong to the certificate in REDIS_TLS_CLIENT_CERT ` +
        `(${cert}); specify this certificate's private key`,
    ],
    [
      { REDIS_TLS_CLIENT_KEY: key },
      'REDIS_TLS_CLIENT_CERT: this variable is not set, but a client certificate needs its key, and the ' +
        'key needs its certificate; set both REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY, or neither',
    ],
  ])('%j', (environment, line) => {
    const settings = settingsOf({ REDIS_URL: 'rediss://redis:6379', ...environment });
    expect(() => mainRedis(settings)).toThrow(new StartError([line]));
  });
});
