import { FilePolicyProvider } from '../../config/files/file-policy-provider.js';
import {
  isRefusedAtStart,
  type LoadedPolicies,
  type LoadOptions,
  loadPolicies,
  type PreviousPolicies,
} from '../../config/files/load-policies.js';
import { areSmall, type PolicyPlace } from '../../config/files/policy-paths.js';
import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { PlanSources } from '../../config/sources/plan-sources.js';
import { type PolicyLoader, ThreadPolicyLoader } from '../../config/threads/load-thread.js';
import { countProblems, formatProblem } from '../../config/yaml/config-problem.js';
import { CALENDARS } from '../../limiter/calendar.js';
import { systemClock } from '../../limiter/clock.js';
import { plural } from '../../runtime/texts.js';
import { runInTurns } from '../../runtime/turns.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError, StartStopped } from '../start-error.js';
import { ConfigWarnings, logProblems, logReload } from './policy-log.js';
import { loadOptions, policyOrigin, policyPlace } from './policy-place.js';

/** Maximum size of policies that the first load reads in this thread, because reading them takes less than a thread. */
const MAX_BYTES_WITHOUT_THREAD = 64 * 1024;

/** Shortest time between two requests to a Redis with plans, in milliseconds. */
const MIN_POLL_MS = 100;

/**
 * Loads the policies and reloads them when they change. Rejects with {@link StartError} and all errors if a policy has
 * a removed key and would be unlimited. Also rejects if no domain is valid, unless FORCE_START_WITHOUT_INITIAL_CONFIG
 * is on. Rejects with {@link StartStopped} if `stopping` aborts the wait for a management server.
 */
export async function openPolicies(
  settings: Settings,
  log: Logger,
  stopping: AbortSignal,
): Promise<LoadingPolicyProvider> {
  if (settings.configType === 'GRPC_XDS_SOTW') {
    const { openXdsPolicies } = await import('./xds-policies.js');
    return openXdsPolicies(settings, log, stopping);
  }
  const places = [policyPlace(settings)];
  const options = loadOptions(settings);
  const sources = sourcesOf(settings, log);
  const loader = new ThreadPolicyLoader(places, options, () => sources.rows());
  const stop = (): void => {
    sources.close();
    loader.close();
  };
  stopping.addEventListener('abort', stop);
  const initial = await sources
    .loadWithRows(() => firstLoad(places, { ...options, rows: sources.rows() }, loader))
    .finally(() => {
      stopping.removeEventListener('abort', stop);
      // A load that was stopped has failed.
      if (stopping.aborted) throw new StartStopped();
    });
  const refused = isRefusedAtStart(initial);
  if (refused && (!settings.forceStart || initial.refusesStart))
    throw startError(initial, policyOrigin(settings));
  const warnings = new ConfigWarnings(log);
  logProblems(log, warnings, initial);
  if (refused)
    log.error(
      'no policy is valid, but weir starts because FORCE_START_WITHOUT_INITIAL_CONFIG is on. Requests ' +
        'get an error until weir loads a valid policy; correct the errors above',
    );
  const provider = new FilePolicyProvider(places, initial, loader, { sources });
  provider.onOutcome((outcome) => logReload(log, warnings, outcome));
  provider.start();
  return provider;
}

function sourcesOf(settings: Settings, log: Logger): PlanSources {
  return new PlanSources({
    passwordFile: settings.plansTokenPath,
    pollMs: Math.max(MIN_POLL_MS, settings.plansPollInterval / 1000),
    nowMicros: () => systemClock.monotonicMicros(),
    log: (level, message) => log[level](message),
  });
}

/**
 * Loads policies for the first time: small ones in this thread, which serves no callers yet, others with `loader`.
 * Domains that are invalid or unchanged keep their version in `previous`. Rejects with {@link StartError} if the load
 * fails.
 */
export async function firstLoad(
  places: readonly PolicyPlace[],
  options: LoadOptions,
  loader: PolicyLoader,
  previous?: PreviousPolicies,
): Promise<LoadedPolicies> {
  if (areSmall(places, MAX_BYTES_WITHOUT_THREAD)) {
    const loaded = loadPolicies(places, options, previous);
    await runInTurns(CALENDARS.prepare(systemClock.wallMicros()));
    return loaded;
  }
  try {
    return await loader.load(previous);
  } catch (error) {
    throw new StartError([
      `the policies could not be loaded: ${(error as Error).message}; check that this process has ` +
        'enough memory and permission to start threads',
    ]);
  }
}

function startError({ errors, policySet }: LoadedPolicies, origin: string): StartError {
  const count = plural(countProblems(errors), 'error');
  const problem =
    policySet.domains.size === 0
      ? `no policy in ${origin} is valid (${count})`
      : `a policy in ${origin} has a key that was removed, and would be unlimited (${count})`;
  const remedy = 'correct the errors above, and run weir check-config before you start weir again';
  return new StartError([...errors.map(formatProblem), `${problem}; ${remedy}`]);
}
