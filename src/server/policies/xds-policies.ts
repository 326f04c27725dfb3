import {
  type AdsAddress,
  KEEPALIVE_MS,
  KEEPALIVE_TIMEOUT_MS,
  metadataOf,
} from '../../config/xds/ads-client.js';
import { XdsPolicyProvider, type XdsServerOptions } from '../../config/xds/xds-policy-provider.js';
import { timerMs } from '../../limiter/clock.js';
import { BackOff } from '../../runtime/back-off.js';
import { shownAddress } from '../../runtime/shown-address.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError, StartStopped } from '../start-error.js';
import { xdsLog } from './policy-log.js';
import { loadOptions } from './policy-place.js';
import { xdsCredentials, xdsServerName } from './xds-credentials.js';
import { type XdsServer, xdsServers } from './xds-servers.js';

/** Default of gRPC. */
const DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Milliseconds between two log lines while a start waits for its first configuration. */
const WAITING_LOG_INTERVAL_MS = 10_000;
/** Maximum wait for the configurations of other management servers after the first configuration, in milliseconds. */
const OTHERS_MS = 10_000;

/**
 * Opens policies from management servers, which it follows until `close`. Resolves when the first configuration is in
 * effect (see {@link firstConfigurations}), or immediately with FORCE_START_WITHOUT_INITIAL_CONFIG. Rejects with
 * {@link StartError} if settings are invalid, or with {@link StartStopped} if `stopping` aborts the wait.
 */
export async function openXdsPolicies(
  settings: Settings,
  log: Logger,
  stopping: AbortSignal,
  othersMs = OTHERS_MS,
): Promise<XdsPolicyProvider> {
  const servers: XdsServerOptions[] = [];
  for (const server of xdsServers(settings)) {
    servers.push({
      options: {
        target: server.url,
        connection: {
          address: await addressOf(server, settings, log),
          node: { id: server.nodeId, metadata: settings.xdsNodeMetadata },
          backOff: backOffOf(settings),
        },
        load: loadOptions(settings),
      },
      events: xdsLog(log, shownAddress(server.url)),
    });
  }
  const policies = new XdsPolicyProvider(servers);
  policies.connect();
  if (!settings.forceStart && !(await firstConfigurations(policies, log, stopping, othersMs))) {
    policies.close();
    throw new StartStopped();
  }
  return policies;
}

/** Returns policies from the same management servers without connections to them. They get updates with `receive`. */
export function receiveXdsPolicies(settings: Settings, log: Logger): XdsPolicyProvider {
  const load = loadOptions(settings);
  return new XdsPolicyProvider(
    xdsServers(settings).map(({ url: target }) => ({
      options: { target, connection: undefined, load },
      events: xdsLog(log, shownAddress(target)),
    })),
  );
}

/**
 * Resolves with true once all management servers have sent a configuration, or `othersMs` milliseconds after the first
 * one did. A server without rate limits may never send one. Resolves with false if `stopping` aborts first.
 */
function firstConfigurations(
  policies: XdsPolicyProvider,
  log: Logger,
  stopping: AbortSignal,
  othersMs: number,
): Promise<boolean> {
  return new Promise((resolve) => {
    let othersWait: NodeJS.Timeout | undefined;
    const logWaiting = (): void => {
      for (const server of policies.missing()) {
        log.info({ server }, 'waiting for the first configuration from the management server');
      }
    };
    const waiting = setInterval(logWaiting, WAITING_LOG_INTERVAL_MS);
    const end = (found: boolean): void => {
      clearInterval(waiting);
      clearTimeout(othersWait);
      stopping.removeEventListener('abort', check);
      resolve(found);
    };
    const startWithout = (): void => {
      for (const server of policies.missing()) {
        log.warn(
          { server },
          'weir starts without a configuration from this management server; until it sends one, weir allows all ' +
            'requests to its domains',
        );
      }
      end(true);
    };
    const check = (): void => {
      const found = policies.current() !== undefined;
      const isComplete = policies.missing().length === 0;
      if (isComplete || stopping.aborted) end(isComplete);
      else if (found) othersWait ??= setTimeout(startWithout, othersMs);
    };
    logWaiting();
    stopping.addEventListener('abort', check);
    policies.onReload(check);
    check();
  });
}

async function addressOf(server: XdsServer, settings: Settings, log: Logger): Promise<AdsAddress> {
  const { url, cert, key, caCert, subjectAltName, headers } = server;
  const credentials = xdsCredentials(server);
  const refused: string[] = [];
  if ((cert === '') !== (key === '')) {
    refused.push(
      'CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY require each other; set both, or neither',
    );
  }
  const unused = [cert, key, caCert, subjectAltName].some((value) => value !== '');
  if (!settings.xdsUseTls.includes(true) && unused) {
    log.warn(
      'CONFIG_GRPC_XDS_SERVER_USE_TLS is off, so weir connects to the management server in plain text ' +
        'and does not use the certificates',
    );
  }
  try {
    metadataOf(headers);
  } catch (error) {
    refused.push(`CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: ${(error as Error).message}`);
  }
  if (refused.length === 0) await credentials().catch((error: Error) => refused.push(error.message));
  if (refused.length > 0) throw new StartError(refused);
  return {
    target: url,
    credentials,
    serverName: xdsServerName(server),
    headers,
    connectTimeoutMs: timerMs(settings.xdsRetryInterval),
    maxMessageBytes: settings.xdsMaxMessageBytes || DEFAULT_MAX_MESSAGE_BYTES,
    keepaliveMs: KEEPALIVE_MS,
    keepaliveTimeoutMs: KEEPALIVE_TIMEOUT_MS,
  };
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
