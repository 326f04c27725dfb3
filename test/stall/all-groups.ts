import { BURST_CASE, BURST_FILES } from '../attack/burst.js';
import { FLOOD_CASES } from '../attack/floods.js';
import { PACED_CASES, POLICY_FILES, REQUEST_CASES } from '../attack/requests.js';
import { ADMINISTRATION_GROUP } from './cases/administration.js';
import { LOG_GROUP, PLANS_GROUP, RELOAD_GROUP, XDS_GROUP } from './cases/changes.js';
import { VIEW_GROUP } from './cases/views.js';
import type { StallCase, StallGroup } from './stall-case.js';

const files = { ...POLICY_FILES, ...BURST_FILES };
const withRedis = (one: StallCase): StallCase => ({ ...one, name: `Redis, ${one.name}` });

/** All cases, grouped by the server that they need. */
export const STALL_GROUPS: readonly StallGroup[] = [
  {
    setup: { name: 'buckets in memory', files },
    cases: [...PACED_CASES, BURST_CASE, ...REQUEST_CASES, ...FLOOD_CASES],
  },
  {
    setup: { name: 'buckets in Redis', files, redis: true },
    cases: [...PACED_CASES, BURST_CASE].map(withRedis),
  },
  VIEW_GROUP,
  ADMINISTRATION_GROUP,
  PLANS_GROUP,
  RELOAD_GROUP,
  XDS_GROUP,
  LOG_GROUP,
];
