import { ADMINISTRATION_GROUP } from './cases/administration.js';
import { LOG_GROUP, PLANS_GROUP, RELOAD_GROUP, XDS_GROUP } from './cases/changes.js';
import { FLOOD_CASES } from './cases/floods.js';
import { HOLD_GROUPS } from './cases/holds.js';
import { MATCHER_FILES, PATH_CASES, VALUE_CASES } from './cases/matchers.js';
import { JSON_CASES, MESSAGE_CASES } from './cases/messages.js';
import { CALENDAR_GROUP, DENIED_GROUP, REDIS_GROUP, WORKERS_GROUP } from './cases/redis.js';
import { VIEW_GROUP } from './cases/views.js';
import type { StallGroup } from './stall-case.js';

/** All cases, grouped by the server that they need. */
export const STALL_GROUPS: readonly StallGroup[] = [
  {
    setup: { name: 'buckets in memory', files: MATCHER_FILES },
    cases: [...PATH_CASES, ...VALUE_CASES, ...MESSAGE_CASES, ...JSON_CASES, ...FLOOD_CASES],
  },
  VIEW_GROUP,
  ADMINISTRATION_GROUP,
  PLANS_GROUP,
  RELOAD_GROUP,
  XDS_GROUP,
  LOG_GROUP,
  REDIS_GROUP,
  DENIED_GROUP,
  CALENDAR_GROUP,
  ...HOLD_GROUPS,
  WORKERS_GROUP,
];
