import {
  FilePolicyProvider,
  type ReloadOutcome,
  type ReloadReason,
} from '../../config/files/file-policy-provider.js';
import { isRefusedAtStart, type LoadedPolicies } from '../../config/files/load-policies.js';
import { type PolicyLoader, ThreadPolicyLoader } from '../../config/files/policy-loader.js';
import { type ConfigProblem, countProblems, formatProblem } from '../../config/yaml/config-problem.js';
import type { DomainStatus } from '../../policy/policy.js';
import type { Logger } from '../../telemetry/logger.js';
import type { PolicySource } from '../grpc-service.js';
import { loadOptions, policyPlace } from '../settings/policy-place.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError, StartStopped } from '../start-error.js';
import { logNewSecrets } from './policy-log.js';
import { openXdsPolicies } from './xds-policies.js';

/** The policies of this process, followed as their files change. */
export interface Policies extends PolicySource {
  /** `success` is false when the files are bad and the old policy stays. */
  onReload(listener: (success: boolean) => void): void;
  /** What is wrong with the files on disk while an older policy is in force; empty when nothing is. */
  errors(): readonly ConfigProblem[];
  /** How each domain stands, sorted by name. */
  domains(): readonly DomainStatus[];
  reload(reason: ReloadReason): void;
  close(): void;
}

/** Most errors, and bad domains, of a reload that are shown one by one; weir check-config prints up to a thousand. */
const MAX_SHOWN = 20;

/** What is wrong, and what becomes of the domains that it is wrong with. */
function logProblems(log: Logger, found: Pick<LoadedPolicies, 'errors' | 'warnings' | 'domains'>): void {
  for (const warning of found.warnings.slice(0, MAX_SHOWN)) log.warn(formatProblem(warning));
  for (const error of found.errors.slice(0, MAX_SHOWN)) log.error(formatProblem(error));
  const bad = found.domains.filter(({ state }) => state !== 'ok');
  for (const { domain, files, state } of bad.slice(0, MAX_SHOWN)) {
    const fate =
      state === 'kept' ? 'its last good version stays in force' : 'it is absent until it is mended';
    log.error({ domain, files }, `the domain is bad; ${fate}`);
  }
  if (bad.length > MAX_SHOWN)
    log.error({ bad: bad.length }, 'more domains are bad; /rlconfig?format=json on the debug port names all');
}

function logOutcome(log: Logger, outcome: ReloadOutcome): void {
  logProblems(log, outcome);
  logNewSecrets(log, outcome.newSecrets);
  const { reason } = outcome;
  const policy = outcome.policySet.version;
  const domains = [...outcome.policySet.domains.keys()];
  if (outcome.kind === 'failed') {
    log.error(
      { reason, policy, errors: countProblems(outcome.errors), domains },
      'the policy on disk is bad; what is good of it is in force, the rest stays as it was',
    );
  } else if (outcome.kind === 'loaded') {
    log.info({ reason, policy, domains }, 'policy reloaded');
    if (domains.length === 0) log.warn('the policy holds no domain any more: nothing is limited');
  } else {
    log.info({ reason, policy }, 'policy unchanged');
  }
}

/**
 * Loads the policies and follows them. Rejects with {@link StartError} and every error when they are bad and no domain is good, unless the
 * settings force the start; with {@link StartStopped} when `stopping` comes while it waits for a management server.
 */
export async function openPolicies(
  settings: Settings,
  log: Logger,
  stopping: AbortSignal,
): Promise<Policies> {
  if (settings.configType === 'GRPC_XDS_SOTW') return openXdsPolicies(settings, log, stopping);
  const places = [policyPlace(settings)];
  const loader = new ThreadPolicyLoader(places, loadOptions(settings));
  const initial = await firstLoad(loader, stopping);
  const refused = isRefusedAtStart(initial);
  if (refused && !settings.forceStart) throw startError(initial);
  logProblems(log, initial);
  if (refused)
    log.error('no policy is good; requests get an error until one is (FORCE_START_WITHOUT_INITIAL_CONFIG)');
  const provider = new FilePolicyProvider(places, initial, loader);
  let { errors } = initial;
  let everGood = !refused;
  provider.onReload((outcome) => {
    errors = outcome.errors;
    everGood ||= outcome.errors.length === 0 || outcome.policySet.domains.size > 0;
    logOutcome(log, outcome);
  });
  provider.start();
  return {
    current: () => (everGood ? provider.current : undefined),
    errors: () => errors.slice(0, MAX_SHOWN),
    domains: () => provider.domains,
    reload: (reason) => {
      void provider.reload(reason);
    },
    onReload: (listener) => provider.onReload((outcome) => listener(outcome.kind !== 'failed')),
    close: () => provider.stop(),
  };
}

/** Rejects with {@link StartStopped} when `stopping` comes first, with {@link StartError} when nothing could be loaded at all. */
async function firstLoad(loader: PolicyLoader, stopping: AbortSignal): Promise<LoadedPolicies> {
  const stop = (): void => loader.close();
  stopping.addEventListener('abort', stop);
  try {
    return await loader.load();
  } catch (error) {
    if (stopping.aborted) throw new StartStopped();
    throw new StartError([
      `the policies could not be loaded: ${(error as Error).message}; is there memory, and may this process start threads?`,
    ]);
  } finally {
    stopping.removeEventListener('abort', stop);
  }
}

function startError({ errors }: LoadedPolicies): StartError {
  const count = countProblems(errors);
  return new StartError([
    ...errors.map(formatProblem),
    `the policy is bad (${count} ${count === 1 ? 'error' : 'errors'}); ` +
      'mend it, or see weir check-config --help',
  ]);
}
