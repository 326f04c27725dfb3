import type { ReloadOutcome } from '../../config/files/file-policy-provider.js';
import type { LoadedPolicies } from '../../config/files/load-policies.js';
import { MAX_SHOWN } from '../../config/policy-provider.js';
import type { NewSecret } from '../../config/read/secret-keys.js';
import type { XdsEvents } from '../../config/xds/xds-source.js';
import { type ConfigProblem, countProblems, formatProblem } from '../../config/yaml/config-problem.js';
import type { Logger } from '../../telemetry/logger.js';
import { ConfigWarnings } from './config-warnings.js';

/** Maximum number of characters of a name or version in the log, because a management server may send megabytes. */
const MAX_LOGGED = 200;

const NO_DOMAIN = 'contains no domain';

function logErrors(log: Logger, errors: readonly ConfigProblem[]): void {
  for (const error of errors.slice(0, MAX_SHOWN)) log.error(formatProblem(error));
}

/** Logs the problems of policies, and which domains are affected. */
export function logProblems(
  log: Logger,
  warnings: ConfigWarnings,
  found: Pick<LoadedPolicies, 'errors' | 'warnings' | 'domains' | 'policySet'>,
): void {
  warnings.logNew(found.policySet.version, found.warnings);
  logErrors(log, found.errors);
  const bad = found.domains.filter(({ state }) => state !== 'ok');
  for (const { domain, files, state } of bad.slice(0, MAX_SHOWN)) {
    const fate =
      state === 'kept'
        ? 'the previous version stays in effect'
        : 'no version is in effect until the errors are corrected';
    log.error({ domain, files }, `the domain is invalid; ${fate}`);
  }
  if (bad.length > MAX_SHOWN)
    log.error(
      { bad: bad.length },
      'more domains are invalid; /rlconfig?format=json on the debug port lists all domains',
    );
}

/** Logs the result of a reload of files. */
export function logReload(log: Logger, warnings: ConfigWarnings, outcome: ReloadOutcome): void {
  logProblems(log, warnings, outcome);
  logNewSecrets(log, outcome.newSecrets);
  const { reason } = outcome;
  const policy = outcome.policySet.version;
  const domains = [...outcome.policySet.domains.keys()];
  if (outcome.kind === 'failed') {
    log.error(
      { reason, policy, errors: countProblems(outcome.errors), domains },
      domains.length === 0
        ? 'the policy on disk is invalid, and no domain is in effect; correct the errors above'
        : 'the policy on disk is invalid: only valid domains were reloaded, and invalid domains keep their ' +
            'previous version; correct the errors above',
    );
  } else if (outcome.kind === 'loaded') {
    log.info({ reason, policy, domains, ...plansOf(outcome) }, 'policy reloaded');
    if (domains.length === 0)
      log.warn('the policy files no longer contain a domain, so weir does not limit any requests');
  } else {
    log.info({ reason, policy }, 'policy unchanged');
  }
}

/** Returns the numbers of rows of `plans`, by domain, as a field of the log; no field without `plans`. */
function plansOf({ policySet }: ReloadOutcome): object {
  const plans = [...policySet.domains].flatMap(([domain, policy]) => {
    if (policy.plans === undefined) return [];
    const { refused, lost } = policy.plans;
    return [{ domain, rows: policy.plans.rowCount, refused, lost }];
  });
  return plans.length === 0 ? {} : { plans: plans.slice(0, MAX_SHOWN) };
}

/** Returns listeners that log events of the management server at `server`. */
export function xdsLog(log: Logger, server: string): XdsEvents {
  const warningLog = new ConfigWarnings(log);
  /** Types of resources that weir did not request and that are already logged. */
  const unrequested = new Set<string>();
  return {
    connected: () => log.info({ server }, 'connected to the management server'),
    lost(reason, pauseMs, wasConnected) {
      const what = wasConnected
        ? 'lost the connection to the management server'
        : 'cannot reach the management server';
      log.warn({ server, reason, pauseMs }, what);
    },
    accepted(version, { policySet, warnings }, inEffect, secrets) {
      warningLog.logNew(policySet.version, warnings);
      const domains = [...policySet.domains.keys()];
      const named = version.slice(0, MAX_LOGGED);
      log.info({ server, version: named, policy: inEffect.version, domains }, 'configuration accepted');
      logNewSecrets(log, secrets);
      if (inEffect.domains.size === 0)
        warningLog.logOnce(
          inEffect.version,
          NO_DOMAIN,
          `the configuration ${NO_DOMAIN}, so weir does not limit any requests`,
        );
    },
    rejected(version, { errors, warnings }, policy) {
      warningLog.logNew(policy, warnings);
      logErrors(log, errors);
      log.error(
        { server, version: version.slice(0, MAX_LOGGED), policy, errors: countProblems(errors) },
        'configuration rejected; the previous configuration stays in effect',
      );
    },
    repeated: (problem) => logErrors(log, [problem]),
    failed: (error) => log.error({ err: error }, 'unexpected error'),
    ignored(typeUrl) {
      const named = typeUrl.slice(0, MAX_LOGGED);
      // Such a server sends them with each push.
      if (unrequested.has(named) || unrequested.size >= MAX_SHOWN) return;
      unrequested.add(named);
      log.warn({ server, typeUrl: named }, 'the management server sent resources that weir did not request');
    },
    reloadAsked: () =>
      log.info({ server }, 'reload skipped, because the management server pushes every change'),
  };
}

/**
 * Logs which buckets start with a new state, because their names contain the value of a key that became a secret with
 * this reload.
 */
function logNewSecrets(log: Logger, secrets: readonly NewSecret[]): void {
  for (const { key, domains } of secrets.slice(0, MAX_SHOWN)) {
    log.warn(
      { key, domains: domains.slice(0, MAX_SHOWN) },
      'another domain now declares this key as secret; in the listed domains, bucket names now contain ' +
        "digests of the key's values, so these buckets start with a new state",
    );
  }
}
