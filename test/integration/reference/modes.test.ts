import { HEADERS, NAMED_HEADERS } from './cases/headers.js';
import { METADATA } from './cases/metadata.js';
import { GLOBAL_QUOTA, QUOTA_AND_SHADOW } from './cases/quota.js';
import { GLOBAL_SHADOW } from './cases/shadow.js';
import { describeGroup } from './runner.js';

const HEADERS_ON = { LIMIT_RESPONSE_HEADERS_ENABLED: 'true' };

describeGroup('LIMIT_RESPONSE_HEADERS_ENABLED', { env: HEADERS_ON, cases: HEADERS });

describeGroup('names of headers', {
  env: {
    ...HEADERS_ON,
    LIMIT_LIMIT_HEADER: 'X-Most',
    LIMIT_REMAINING_HEADER: 'x-left',
    LIMIT_RESET_HEADER: 'X-Window-Reset',
  },
  cases: NAMED_HEADERS,
});

describeGroup('RESPONSE_DYNAMIC_METADATA', { env: { RESPONSE_DYNAMIC_METADATA: 'true' }, cases: METADATA });

describeGroup('SHADOW_MODE', { env: { ...HEADERS_ON, SHADOW_MODE: 'true' }, cases: GLOBAL_SHADOW });

describeGroup('QUOTA_MODE', { env: { ...HEADERS_ON, QUOTA_MODE: 'true' }, cases: GLOBAL_QUOTA });

describeGroup('QUOTA_MODE and SHADOW_MODE', {
  env: { QUOTA_MODE: 'true', SHADOW_MODE: 'true' },
  cases: QUOTA_AND_SHADOW,
});
