import { type Administer, BucketAdmin } from '../admin/buckets/bucket-admin.js';
import type { QuestionContext } from '../admin/buckets/read-question.js';
import type { PolicyProvider } from '../config/policy-provider.js';
import type { Clock } from '../limiter/clock.js';
import { MatchWork } from '../policy/match-work.js';
import { DEFAULT_KEY_PREFIX } from '../storage/redis/redis-key.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { answerOptions } from './answer-options.js';
import type { Settings } from './settings/settings-table.js';

export interface BucketAdminParts {
  readonly settings: Settings;
  readonly policies: PolicyProvider;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Returns a function that runs the commands of `/buckets` with the store of this process. */
export function openBucketAdmin(
  { settings, policies, clock, log }: BucketAdminParts,
  store: QuestionContext['store'],
  { adminCalls, holds }: Pick<Metrics, 'adminCalls' | 'holds'>,
): Administer {
  const admin = new BucketAdmin({
    policies: () => policies.current(),
    store,
    clock,
    answers: answerOptions(settings),
    maxLimits: settings.maxLimits,
    matchWork: new MatchWork(settings.maxMatchWork, settings.maxRegexValueBytes),
    keyPrefix: settings.redisUrl === '' ? undefined : settings.cacheKeyPrefix + DEFAULT_KEY_PREFIX,
    log,
    count: adminCalls,
    counts: holds,
  });
  return (question, caller) => admin.answer(question, caller);
}
