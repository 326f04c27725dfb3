import { SETTINGS, type Settings } from './settings-table.js';

/** The names of variables that are set, on the command line or in the environment. */
export type GivenSettings = ReadonlySet<string>;

const LATER_TOPOLOGIES =
  'weir speaks to one Redis for now; name the master in REDIS_URL and set REDIS_TYPE=SINGLE';

/**
 * What good values mean together that weir cannot do, or that nobody can: a line each, with the variable, the reason and what to do instead. The
 * start ends with them, as a variable that is ignored in silence limits something else than its owner thinks.
 */
export function refusedSettings(settings: Settings, given: GivenSettings): readonly string[] {
  const refused: string[] = [];
  const refuse = (when: boolean, line: string): void => {
    if (when) refused.push(line);
  };
  const runtime = ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'].find((name) =>
    given.has(name),
  );
  refuse(
    given.has('CONFIG_PATH') && runtime !== undefined,
    `CONFIG_PATH: ${runtime} is set, too, and both say where the policies are; unset one of them`,
  );
  refuse(
    settings.backendType === 'memcache',
    'BACKEND_TYPE: weir has no memcache; use Redis (REDIS_URL), or leave both unset to keep buckets in memory',
  );
  refuseRedis(settings, given, refuse);
  refuse(
    settings.tracingEnabled,
    'TRACING_ENABLED: weir has no tracing yet; unset it. LOG_LEVEL=debug logs each decision, and /metrics has times',
  );
  return refused;
}

function refuseRedis(
  settings: Settings,
  given: GivenSettings,
  refuse: (when: boolean, line: string) => void,
): void {
  const noUrl = settings.redisUrl === '';
  refuse(
    noUrl && settings.backendType === 'redis',
    'BACKEND_TYPE: redis needs REDIS_URL, as in REDIS_URL=redis:6379',
  );
  refuse(noUrl && settings.perSecond, 'REDIS_PERSECOND: it needs REDIS_URL, too, for all other limits');
  refuse(
    noUrl && given.has('REDIS_SOCKET_TYPE'),
    'REDIS_SOCKET_TYPE: REDIS_URL is not set, so buckets would live in memory; set REDIS_URL, or unset this',
  );
  refuse(settings.redisType !== 'single', `REDIS_TYPE: ${LATER_TOPOLOGIES}`);
  refuse(
    settings.perSecond && settings.perSecondType !== 'single',
    `REDIS_PERSECOND_TYPE: ${LATER_TOPOLOGIES.replaceAll('REDIS_', 'REDIS_PERSECOND_')}`,
  );
  for (const [name, value] of [
    ['REDIS_POOL_ON_EMPTY_BEHAVIOR', settings.redisPoolOnEmpty],
    ['REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR', settings.perSecondPoolOnEmpty],
  ] as const) {
    refuse(
      value !== 'WAIT',
      `${name}: ${value} ends the reference, too; unset it. REDIS_MAX_IN_FLIGHT bounds what waits for Redis`,
    );
  }
  refuse(
    settings.redisAuth !== '' && settings.redisAuthFile !== '',
    'REDIS_AUTH_FILE: REDIS_AUTH is set, too; unset one of them',
  );
  refuse(
    settings.perSecondAuth !== '' && settings.perSecondAuthFile !== '',
    'REDIS_PERSECOND_AUTH_FILE: REDIS_PERSECOND_AUTH is set, too; unset one of them',
  );
}

/** Lines for the log about variables that are set and change nothing. */
export function inertSettings(given: GivenSettings): readonly string[] {
  return SETTINGS.flatMap(({ name, reference }) =>
    given.has(name) && reference?.inert !== undefined ? [`${name} changes nothing: ${reference.inert}`] : [],
  );
}
