import type { LoadedPolicies } from '../../config/files/load-policies.js';
import { newSecrets, shareSecrets } from '../../config/read/secret-keys.js';
import { AdsClient, type AdsUpdate, type Rejection } from '../../config/xds/ads-client.js';
import {
  type AdsAddress,
  KEEPALIVE_MS,
  KEEPALIVE_TIMEOUT_MS,
  toMetadata,
} from '../../config/xds/ads-stream.js';
import { BackOff } from '../../config/xds/back-off.js';
import { createDiscoveryCodec } from '../../config/xds/discovery.js';
import { UpdateLoader } from '../../config/xds/update-loader.js';
import {
  type ConfigProblem,
  countProblems,
  formatProblem,
  WHOLE_FILE,
} from '../../config/yaml/config-problem.js';
import { timerMs } from '../../limiter/clock.js';
import type { DomainStatus } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { Logger } from '../../telemetry/logger.js';
import { loadOptions } from '../settings/policy-place.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError, StartStopped } from '../start-error.js';
import type { Policies } from './open-policies.js';
import { logNewSecrets } from './policy-log.js';
import { XdsCredentials, xdsServerName } from './xds-credentials.js';

/** gRPC's own default. */
const DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Most problems of one update that are logged, and told the management server, one by one. */
const MAX_SHOWN = 20;
/** So much of a name or version is logged: the management server may send megabytes. */
const MAX_LOGGED = 200;
/** How often a start that waits for its first configuration says so. */
const WAITING_MS = 10_000;

/**
 * Policies from a management server, followed until `close`. Resolves when the first configuration is in force, at once with
 * FORCE_START_WITHOUT_INITIAL_CONFIG. Rejects with {@link StartError} for settings that cannot be used, with {@link StartStopped} when `stopping`
 * comes before that configuration.
 */
export async function openXdsPolicies(
  settings: Settings,
  log: Logger,
  stopping: AbortSignal,
): Promise<Policies> {
  const policies = new XdsPolicies(settings, log);
  policies.connect();
  if (!settings.forceStart && !(await firstConfiguration(policies, settings, log, stopping))) {
    policies.close();
    throw new StartStopped();
  }
  return policies;
}

/** Resolves with true when there is a configuration, with false when `stopping` comes first. */
function firstConfiguration(
  policies: XdsPolicies,
  { xdsServerUrl: server }: Settings,
  log: Logger,
  stopping: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve) => {
    const tell = (): void => {
      log.info({ server }, 'waiting for the first configuration of the management server');
    };
    const waiting = setInterval(tell, WAITING_MS);
    const settle = (): void => {
      const found = policies.current() !== undefined;
      if (!found && !stopping.aborted) return;
      clearInterval(waiting);
      stopping.removeEventListener('abort', settle);
      resolve(found);
    };
    tell();
    stopping.addEventListener('abort', settle);
    policies.onReload(settle);
    settle();
  });
}

class XdsPolicies implements Policies {
  readonly #server: string;
  readonly #log: Logger;
  readonly #loader: UpdateLoader;
  readonly #client: AdsClient;
  readonly #listeners: ((success: boolean) => void)[] = [];
  #connected = false;
  /** The last good update; its policies are in force. */
  #accepted: LoadedPolicies | undefined;
  #domains: readonly DomainStatus[] = [];
  #errors: readonly ConfigProblem[] = [];

  constructor(settings: Settings, log: Logger) {
    this.#server = settings.xdsServerUrl;
    this.#log = log;
    this.#loader = new UpdateLoader(loadOptions(settings));
    this.#client = new AdsClient({
      address: addressOf(settings, log),
      codec: createDiscoveryCodec(),
      node: { id: settings.xdsNodeId, metadata: settings.xdsNodeMetadata },
      backOff: backOffOf(settings),
      timers: {
        set: (callback, delayMs) => setTimeout(callback, delayMs),
        clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
      },
      update: (update) => this.#update(update),
      refused: (version, error) => this.#refuse(version, error),
      connected: () => this.#onConnected(),
      lost: (reason, pauseMs) => this.#onLost(reason, pauseMs),
      failed: (error) => this.#onFailed(error),
      ignored: (typeUrl) =>
        log.warn(
          { server: this.#server, typeUrl: typeUrl.slice(0, MAX_LOGGED) },
          'resources that were not asked for',
        ),
    });
  }

  connect(): void {
    this.#client.connect();
  }

  current(): PolicySet | undefined {
    return this.#accepted?.policySet;
  }

  errors(): readonly ConfigProblem[] {
    return this.#errors;
  }

  domains(): readonly DomainStatus[] {
    return this.#domains;
  }

  /** There is nothing to read again: updates come by themselves. Ends a pause before the next connection. */
  reload(): void {
    if (this.#connected)
      this.#log.info({ server: this.#server }, 'the management server sends changes itself');
    this.#client.connect();
  }

  onReload(listener: (success: boolean) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#client.stop();
    this.#loader.close();
  }

  async #update({ version, bytes, rejected }: AdsUpdate): Promise<Rejection | undefined> {
    const loaded = await this.#loader.load(bytes, this.#accepted, rejected);
    const { errors, contents: digest } = loaded;
    // It was logged then, and is in force no more than before.
    if (digest === rejected) return { digest, error: '' };
    for (const warning of loaded.warnings.slice(0, MAX_SHOWN)) this.#log.warn(formatProblem(warning));
    this.#errors = errors.slice(0, MAX_SHOWN);
    const named = version.slice(0, MAX_LOGGED);
    if (errors.length === 0) this.#accept(named, loaded);
    else this.#reject(named, loaded);
    for (const listener of this.#listeners) listener(errors.length === 0);
    return errors.length === 0 ? undefined : { digest, error: rejection(errors) };
  }

  /** An update that is too large to be looked at. */
  #refuse(version: string, message: string): void {
    const error: ConfigProblem = { file: 'update', ...WHOLE_FILE, path: '', message };
    this.#errors = [error];
    this.#log.error(formatProblem(error));
    this.#logRejected(version.slice(0, MAX_LOGGED), 1);
    for (const listener of this.#listeners) listener(false);
  }

  #accept(version: string, loaded: LoadedPolicies): void {
    const before = this.current();
    // The set stays the very object when it says the same, so that nobody takes it for another.
    const policySet = before?.version === loaded.policySet.version ? before : loaded.policySet;
    const secrets = before === undefined || before === policySet ? [] : newSecrets(before, policySet);
    shareSecrets(policySet);
    this.#accepted = { ...loaded, policySet };
    this.#domains = loaded.domains;
    const names = [...policySet.domains.keys()];
    this.#log.info({ version, policy: policySet.version, domains: names }, 'configuration accepted');
    logNewSecrets(this.#log, secrets);
    if (names.length === 0) this.#log.warn('the configuration holds no domain: nothing is limited');
  }

  #reject(version: string, { errors, domains }: LoadedPolicies): void {
    for (const error of errors.slice(0, MAX_SHOWN)) this.#log.error(formatProblem(error));
    const inForce = this.current()?.domains ?? new Map();
    const kept = this.#domains.flatMap((one) =>
      inForce.has(one.domain) ? [{ ...one, state: 'kept' as const }] : [],
    );
    const absent = domains.flatMap((one) =>
      inForce.has(one.domain) ? [] : [{ ...one, state: 'absent' as const }],
    );
    this.#domains = [...kept, ...absent].sort((a, b) => (a.domain < b.domain ? -1 : 1));
    this.#logRejected(version, countProblems(errors));
  }

  #logRejected(version: string, errors: number): void {
    const policy = this.current()?.version ?? 'none';
    this.#log.error({ version, policy, errors }, 'configuration rejected; the one in force stays');
  }

  #onFailed(error: unknown): void {
    this.#log.error({ err: error }, 'unexpected error');
    for (const listener of this.#listeners) listener(false);
  }

  #onConnected(): void {
    this.#connected = true;
    this.#log.info({ server: this.#server }, 'connected to the management server');
  }

  #onLost(reason: string, pauseMs: number): void {
    const what = this.#connected ? 'lost the management server' : 'cannot reach the management server';
    this.#connected = false;
    this.#log.warn({ server: this.#server, reason, pauseMs }, what);
  }
}

/** For the management server's log: what its people must mend. */
function rejection(errors: readonly ConfigProblem[]): string {
  const lines = errors.slice(0, MAX_SHOWN).map(formatProblem);
  const more = countProblems(errors) - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n');
}

function addressOf(settings: Settings, log: Logger): AdsAddress {
  const { xdsServerUrl, xdsUseTls, xdsTlsCert, xdsTlsKey, xdsTlsCaCert, xdsTlsSan } = settings;
  const credentials = new XdsCredentials(settings);
  const refused: string[] = [];
  if ((xdsTlsCert === '') !== (xdsTlsKey === '')) {
    refused.push(
      'CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY go together; set both or none',
    );
  }
  const unused = [xdsTlsCert, xdsTlsKey, xdsTlsCaCert, xdsTlsSan].some((value) => value !== '');
  if (!xdsUseTls && unused) {
    log.warn(
      'CONFIG_GRPC_XDS_SERVER_USE_TLS is off: the management server is spoken to in clear text, and certificates for it are not used',
    );
  }
  attempt(refused, 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: ', () => toMetadata(settings.xdsHeaders));
  if (refused.length === 0) attempt(refused, '', () => credentials.get());
  if (refused.length > 0) throw new StartError(refused);
  return {
    target: xdsServerUrl,
    credentials: () => credentials.get(),
    serverName: xdsServerName(settings),
    headers: settings.xdsHeaders,
    connectTimeoutMs: timerMs(settings.xdsRetryInterval),
    maxMessageBytes: settings.xdsMaxMessageBytes || DEFAULT_MAX_MESSAGE_BYTES,
    keepaliveMs: KEEPALIVE_MS,
    keepaliveTimeoutMs: KEEPALIVE_TIMEOUT_MS,
  };
}

function attempt(refused: string[], prefix: string, make: () => unknown): void {
  try {
    make();
  } catch (error) {
    refused.push(`${prefix}${(error as Error).message}`);
  }
}

function backOffOf(settings: Settings): BackOff {
  return new BackOff({
    initialMs: timerMs(settings.xdsBackoffInitial),
    maxMs: timerMs(settings.xdsBackoffMax),
    randomFactor: settings.xdsBackoffJitter ? settings.xdsBackoffRandomFactor : 0,
    random: Math.random,
  });
}
