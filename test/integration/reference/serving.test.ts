import { credentials } from '@grpc/grpc-js';
import { expect, test } from '@jest/globals';
import { RawClient } from '../../support/grpc/grpc-client.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';
import { ok, type ReferenceCase } from './case.js';
import { EMPTY_DIRECTORY, NO_CONFIGURATION, NOT_HEALTHY, REDIS_GONE } from './cases/errors.js';
import { JSON_EXTRAS } from './cases/http.js';
import { describeGroup } from './runner.js';

describeGroup('/json with headers and metadata', {
  env: { LIMIT_RESPONSE_HEADERS_ENABLED: 'true', RESPONSE_DYNAMIC_METADATA: 'true' },
  cases: JSON_EXTRAS,
});

describeGroup('FORCE_START_WITHOUT_INITIAL_CONFIG', {
  env: { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
  cases: NO_CONFIGURATION,
  more: (running) => {
    test('counts the invalid configuration', async () => {
      const { statsd } = running();
      await waitFor('the count', () => statsd.counter('ratelimit.service.config_load_error') > 0);
      expect(statsd.counter('ratelimit.service.config_load_success')).toBe(0);
    });
  },
});

describeGroup('HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED', {
  env: { HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true' },
  cases: NOT_HEALTHY,
  untilHealthy: false,
});

describeGroup('an empty directory', { cases: EMPTY_DIRECTORY });

describeGroup('a Redis that becomes unavailable', {
  cases: REDIS_GONE,
  before: async ({ redis }) => {
    await redis.kill();
  },
});

const TAGGED: ReferenceCase = {
  name: 'every name has the tags',
  rules: '\n  - key: user\n    rate_limit: { unit: hour, requests_per_unit: 9 }\n',
  steps: [{ ask: 'user=ann', get: [ok('9/hour', 8)] }],
  stats: { 'user.total_hits.__a=b.__where=eu': 1, 'user.within_limit.__a=b.__where=eu': 1 },
  counters: { 'ratelimit_server.ShouldRateLimit.total_requests.__a=b.__where=eu': 1 },
};

const authority = new CertificateAuthority();
const folder = new TempDir();
const server = authority.issue('DNS:localhost,IP:127.0.0.1');
const client = authority.issue('DNS:envoy.example');
const tls = {
  GRPC_SERVER_USE_TLS: 'true',
  GRPC_SERVER_TLS_CERT: folder.write('server.pem', server.cert),
  GRPC_SERVER_TLS_KEY: folder.write('server-key.pem', server.key),
};
const ca = folder.write('ca.pem', authority.cert);

describeGroup('EXTRA_TAGS, and mutual TLS with a name', {
  env: {
    ...tls,
    GRPC_CLIENT_TLS_CACERT: ca,
    GRPC_CLIENT_TLS_SAN: 'envoy.example',
    EXTRA_TAGS: 'where:eu,a:b',
  },
  cases: [TAGGED],
  client: ({ grpcPort }) =>
    new RawClient(
      `127.0.0.1:${grpcPort}`,
      credentials.createSsl(Buffer.from(authority.cert), Buffer.from(client.key), Buffer.from(client.cert)),
    ),
});
