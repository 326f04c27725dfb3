import { HITS } from './cases/hits.js';
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

describeGroup('decisions', {
  cases: [
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
  ],
});
