import { expect, test } from '@jest/globals';
import { waitFor } from '../../support/process/wait-for.js';
import { BAD_REQUESTS } from './cases/errors.js';
import { ALL_FILES, YAML_TEXTS } from './cases/files.js';
import { HITS } from './cases/hits.js';
import { HTTP_CASES, JSON_CASES } from './cases/http.js';
import { MATCHING } from './cases/matching.js';
import { NEAR_LIMIT } from './cases/near-limit.js';
import { OVERRIDES } from './cases/overrides.js';
import { QUOTA_RULES } from './cases/quota.js';
import { REPLACES } from './cases/replaces.js';
import { SHADOW_RULES } from './cases/shadow.js';
import { STAT_NAMES } from './cases/stat-names.js';
import { UNITS_CASES } from './cases/units.js';
import { WILDCARDS } from './cases/wildcards.js';
import { describeGroup } from './runner.js';

describeGroup('default settings', {
  cases: [
    ...BAD_REQUESTS,
    ...MATCHING,
    ...WILDCARDS,
    ...REPLACES,
    ...HITS,
    ...OVERRIDES,
    ...UNITS_CASES,
    ...NEAR_LIMIT,
    ...SHADOW_RULES,
    ...QUOTA_RULES,
    ...STAT_NAMES,
    ...JSON_CASES,
    ...HTTP_CASES,
    ...YAML_TEXTS,
    ...ALL_FILES,
  ],
  more: (running) => {
    test('statistics of the server itself', async () => {
      const { statsd } = running();
      await waitFor('names', () => statsd.counter('ratelimit_server.ShouldRateLimit.total_requests') > 0);
      expect(statsd.names()).toEqual(
        expect.arrayContaining([
          'ratelimit.service.config_load_success',
          'ratelimit_server.ShouldRateLimit.total_requests',
          'ratelimit_server.ShouldRateLimit.response_time',
          'ratelimit.redis_pool.cx_active',
          'ratelimit.redis_pool.cx_total',
        ]),
      );
      expect(statsd.counter('ratelimit.service.config_load_success')).toBe(1);
    });
  },
});
