import { assetPath } from '../assets.js';
import { type ConfigProblem, formatProblem } from '../config/config-problem.js';
import { FilePolicyProvider, type ReloadOutcome, type ReloadReason } from '../config/file-policy-provider.js';
import { loadPolicies } from '../config/load-policies.js';
import type { DomainStatus } from '../config/policy.js';
import type { Logger } from '../telemetry/logger.js';
import type { PolicySource } from './grpc-service.js';
import { BUNDLED_POLICY } from './policy-place.js';
import type { Settings } from './settings-table.js';
import { StartError, type StartStopped } from './start-error.js';
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

/** Most errors of a reload that are shown one by one; weir check-config prints all. */
const MAX_SHOWN = 20;

function logOutcome(log: Logger, outcome: ReloadOutcome): void {
  for (const warning of outcome.warnings.slice(0, MAX_SHOWN)) log.warn(formatProblem(warning));
  const { reason } = outcome;
  const policy = outcome.policySet.version;
  if (outcome.kind === 'failed') {
    for (const error of outcome.errors.slice(0, MAX_SHOWN)) log.error(formatProblem(error));
    const errors = outcome.errors.length;
    log.error({ reason, policy, errors }, 'the policy on disk is bad; the one in force stays');
  } else if (outcome.kind === 'loaded') {
    const domains = [...outcome.policySet.domains.keys()];
    log.info({ reason, policy, domains }, 'policy reloaded');
    if (domains.length === 0) log.warn('the policy holds no domain any more: nothing is limited');
  } else {
    log.info({ reason, policy }, 'policy unchanged');
  }
}

/**
 * Loads the policies and follows them. Rejects with {@link StartError} and every error when they are bad, with {@link StartStopped} when
 * `stopping` comes first.
 */
export async function openPolicies(
  settings: Settings,
  log: Logger,
  stopping: AbortSignal,
): Promise<Policies> {
  if (settings.configType === 'GRPC_XDS_SOTW') return openXdsPolicies(settings, log, stopping);
  const path = settings.configPath === '' ? assetPath(BUNDLED_POLICY) : settings.configPath;
  const initial = loadPolicies([path]);
  if (initial.errors.length > 0) {
    throw new StartError([
      ...initial.errors.map(formatProblem),
      `the policy is bad (${initial.errors.length} ${initial.errors.length === 1 ? 'error' : 'errors'}); ` +
        'mend it, or see weir check-config --help',
    ]);
  }
  for (const warning of initial.warnings) log.warn(formatProblem(warning));
  const provider = new FilePolicyProvider([path], initial);
  let errors: readonly ConfigProblem[] = [];
  const { domains } = initial;
  provider.onReload((outcome) => {
    errors = outcome.errors;
    logOutcome(log, outcome);
  });
  provider.start();
  return {
    current: () => provider.current,
    errors: () => errors.slice(0, MAX_SHOWN),
    domains: () => domains,
    reload: (reason) => {
      provider.reload(reason);
    },
    onReload: (listener) => provider.onReload((outcome) => listener(outcome.kind !== 'failed')),
    close: () => provider.stop(),
  };
}
