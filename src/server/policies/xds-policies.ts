import {
  type AdsAddress,
  KEEPALIVE_MS,
  KEEPALIVE_TIMEOUT_MS,
  metadataOf,
} from '../../config/xds/ads-stream.js';
import { XdsPolicyProvider } from '../../config/xds/xds-policy-provider.js';
import { timerMs } from '../../limiter/clock.js';
import { BackOff } from '../../runtime/back-off.js';
import type { Logger } from '../../telemetry/logger.js';
import { loadOptions } from '../settings/policy-place.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError, StartStopped } from '../start-error.js';
import { xdsLog } from './policy-log.js';
import { XdsCredentials, xdsServerName } from './xds-credentials.js';

/** Default of gRPC. */
const DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Milliseconds between two log lines while a start waits for its first configuration. */
const WAITING_LOG_INTERVAL_MS = 10_000;

/**
 * Opens policies from a management server, which it follows until `close`. Resolves when the first configuration is in
 * effect, or immediately with FORCE_START_WITHOUT_INITIAL_CONFIG. Rejects with {@link StartError} if settings are
 * invalid, or with {@link StartStopped} if `stopping` aborts the wait.
 */
export async function openXdsPolicies(
  settings: Settings,
  log: Logger,
  stopping: AbortSignal,
): Promise<XdsPolicyProvider> {
  const policies = new XdsPolicyProvider(
    {
      address: await addressOf(settings, log),
      node: { id: settings.xdsNodeId, metadata: settings.xdsNodeMetadata },
      backOff: backOffOf(settings),
      load: loadOptions(settings),
    },
    xdsLog(log, settings.xdsServerUrl),
  );
  policies.connect();
  if (!settings.forceStart && !(await firstConfiguration(policies, settings, log, stopping))) {
    policies.close();
    throw new StartStopped();
  }
  return policies;
}

/** Resolves with true once a configuration exists, or with false if `stopping` aborts first. */
function firstConfiguration(
  policies: XdsPolicyProvider,
  { xdsServerUrl: server }: Settings,
  log: Logger,
  stopping: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve) => {
    const logWaiting = (): void => {
      log.info({ server }, 'waiting for the first configuration from the management server');
    };
    const waiting = setInterval(logWaiting, WAITING_LOG_INTERVAL_MS);
    const check = (): void => {
      const found = policies.current() !== undefined;
      if (!found && !stopping.aborted) return;
      clearInterval(waiting);
      stopping.removeEventListener('abort', check);
      resolve(found);
    };
    logWaiting();
    stopping.addEventListener('abort', check);
    policies.onReload(check);
    check();
  });
}

async function addressOf(settings: Settings, log: Logger): Promise<AdsAddress> {
  const { xdsServerUrl, xdsUseTls, xdsTlsCert, xdsTlsKey, xdsTlsCaCert, xdsTlsSan } = settings;
  const credentials = new XdsCredentials(settings);
  const refused: string[] = [];
  if ((xdsTlsCert === '') !== (xdsTlsKey === '')) {
    refused.push(
      'CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY require each other; set both, or neither',
    );
  }
  const unused = [xdsTlsCert, xdsTlsKey, xdsTlsCaCert, xdsTlsSan].some((value) => value !== '');
  if (!xdsUseTls && unused) {
    log.warn(
      'CONFIG_GRPC_XDS_SERVER_USE_TLS is off, so weir connects to the management server in plain text ' +
        'and does not use the certificates',
    );
  }
  attempt(refused, 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: ', () => metadataOf(settings.xdsHeaders));
  if (refused.length === 0) await credentials.get().catch((error: Error) => refused.push(error.message));
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

/**
 * Minimum pause between two attempts in milliseconds, regardless of the settings: a server that refuses one connection
 * is likely to refuse the next one, too.
 */
const MIN_BACK_OFF_MS = 100;

function backOffOf(settings: Settings): BackOff {
  return new BackOff({
    initialMs: timerMs(settings.xdsBackoffInitial),
    maxMs: timerMs(settings.xdsBackoffMax),
    minMs: MIN_BACK_OFF_MS,
    jitterFactor: settings.xdsBackoffJitter ? settings.xdsBackoffRandomFactor : 0,
  });
}
