import type { ReloadOutcome } from '../../config/files/file-policy-provider.js';
import type { LoadedPolicies } from '../../config/files/load-policies.js';
import { MAX_SHOWN, type PolicyProvider } from '../../config/policy-provider.js';
import { PolicyDiffer } from '../../config/threads/policy-task.js';
import type { XdsEvents } from '../../config/xds/xds-policy-provider.js';
import { type ConfigProblem, countProblems, formatProblem } from '../../config/yaml/config-problem.js';
import type { Clock } from '../../limiter/clock.js';
import type { NewSecret, PolicySet } from '../../policy/compiled-policy.js';
import { plural } from '../../runtime/texts.js';
import type { Logger } from '../../telemetry/logger.js';

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

/**
 * Logs warnings about a configuration once per version and kind, because a management server may repeat the same
 * problem in many places and pushes. At most {@link MAX_SHOWN} kinds are logged and remembered per version.
 */
export class ConfigWarnings {
  readonly #log: Logger;
  #version = '';
  readonly #loggedKinds = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs the first warning of each kind that was not logged yet for `version`, the version in effect. */
  logNew(version: string, warnings: readonly ConfigProblem[]): void {
    for (const { kind, first, count } of groupProblems(warnings)) {
      const more = count === 1 ? '' : ` (the first of ${count} such warnings)`;
      this.logOnce(version, kind, formatProblem(first) + more);
    }
  }

  /** Logs `text` unless a warning of this `kind` was already logged for `version`. */
  logOnce(version: string, kind: string, text: string): void {
    if (version !== this.#version) this.#loggedKinds.clear();
    this.#version = version;
    if (this.#loggedKinds.has(kind) || this.#loggedKinds.size >= MAX_SHOWN) return;
    this.#loggedKinds.add(kind);
    this.#log.warn(text);
  }
}

/** Problems with the same remedy. */
interface ProblemGroup {
  /** The field and the message without the parts that differ between problems: quoted strings and numbers. */
  readonly kind: string;
  readonly first: ConfigProblem;
  readonly count: number;
}

function groupProblems(problems: readonly ConfigProblem[]): readonly ProblemGroup[] {
  const groups = new Map<string, ProblemGroup>();
  for (const problem of problems) {
    const field = problem.path.slice(problem.path.lastIndexOf('.') + 1);
    const kind = `${field}: ${problem.message}`.replaceAll(/"[^"]*"|\d+/g, '…');
    const { first = problem, count = 0 } = groups.get(kind) ?? {};
    groups.set(kind, { kind, first, count: count + 1 });
  }
  return [...groups.values()];
}

/**
 * Logs what each reload changes, in the words of `weir diff`, with a bounded number of lines. If policies change during
 * a comparison, intermediate versions are skipped: each entry compares a version to the last logged one. Returns a
 * function that stops logging.
 */
export function logChanges(
  log: Logger,
  policies: PolicyProvider,
  clock: Pick<Clock, 'wallMicros'>,
  differ: Pick<PolicyDiffer, 'diff' | 'close'> = new PolicyDiffer(),
): () => void {
  let logged = policies.current();
  let isLogging = false;
  let closed = false;
  const logChange = async (before: PolicySet, now: PolicySet): Promise<void> => {
    const about = { before: before.version, policy: now.version };
    try {
      const { summary, lines, more } = await differ.diff(before, now, clock.wallMicros());
      const rest =
        more === 0
          ? ''
          : `; ${plural(more, 'more change')} not listed (to see all changes, run weir diff <old> <new>)`;
      log.info(about, `changes in the new policy: ${summary}${rest}`);
      for (const { domain, text } of lines) log.info({ domain, policy: now.version }, text);
    } catch (error) {
      if (closed) return;
      const why = error instanceof Error ? error.message : String(error);
      log.warn(
        about,
        `the changes in the new policy could not be listed: ${why}; to see the changes, run weir diff <old> <new>`,
      );
    }
  };
  const logAll = async (): Promise<void> => {
    if (isLogging) return;
    isLogging = true;
    for (let now = policies.current(); now !== logged; now = policies.current()) {
      if (closed) return;
      const before = logged;
      logged = now;
      if (before !== undefined && now !== undefined) await logChange(before, now);
    }
    isLogging = false;
  };
  policies.onReload(() => void logAll());
  return () => {
    closed = true;
    differ.close();
  };
}
