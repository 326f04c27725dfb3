import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { checkServerIdentity, rootCertificates } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { type ChannelCredentials, credentials, type VerifyOptions } from '@grpc/grpc-js';
import {
  type AdsAddress,
  KEEPALIVE_MS,
  KEEPALIVE_TIMEOUT_MS,
  metadataOf,
} from '../../config/xds/ads-client.js';
import { XdsPolicyProvider, type XdsServerOptions } from '../../config/xds/xds-policy-provider.js';
import { hasSubjectAltName } from '../../h2/tls-material.js';
import { timerMs } from '../../limiter/clock.js';
import { ipOfTarget } from '../../runtime/no-server-name.js';
import { shownAddress } from '../../runtime/shown-address.js';
import { BackOff } from '../../runtime/timers.js';
import type { Logger } from '../../telemetry/logger.js';
import { loadNamedFile } from '../followed-files.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError, StartStopped } from '../start-error.js';
import { MAX_TLS_FILE_BYTES } from '../tls-files.js';
import { xdsLog } from './policy-log.js';
import { loadOptions } from './policy-place.js';
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

const CERT = 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT';
const KEY = 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY';
const CA = 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT';

/**
 * Returns a function that creates credentials for connections to a management server from the current content of the
 * files. It rejects with an Error that names the variable and the unusable file.
 */
function xdsCredentials(server: XdsServer): () => Promise<ChannelCredentials> {
  // Creating credentials with all of Node.js's root certificates takes 60 ms, so they are kept while no file changes.
  let last: { readonly files: readonly (Buffer | null)[]; readonly made: ChannelCredentials } | undefined;
  return async () => {
    if (!server.useTls) return credentials.createInsecure();
    const files = [
      await loadPem(CA, server.caCert),
      await loadPem(KEY, server.key),
      await loadPem(CERT, server.cert),
    ] as const;
    const [ca, key, cert] = files;
    if (last !== undefined && isDeepStrictEqual(last.files, files)) return last.made;
    try {
      // Node.js ignores text that contains no certificate, and would then trust no server.
      if (ca !== null) new X509Certificate(ca);
      const roots = ca === null ? null : withBundledRoots(ca);
      const made = credentials.createSsl(roots, key, cert, verification(server));
      last = { files, made };
      return made;
    } catch (error) {
      throw new Error(
        `${CA}, ${CERT}, ${KEY}: the files do not contain usable PEM certificates and a usable key: ` +
          `${(error as Error).message}`,
      );
    }
  };
}

/** Adds the root certificates of Node.js, as envoyproxy/ratelimit adds those of the system. */
function withBundledRoots(ca: Buffer): Buffer {
  return Buffer.from(`${rootCertificates.join('\n')}\n${ca}`);
}

/**
 * Returns how to check the name in the certificate. gRPC cannot check IP addresses, because it does not send them in
 * the handshake.
 */
function verification({ subjectAltName, url }: XdsServer): VerifyOptions {
  if (subjectAltName !== '') return checkName(subjectAltName);
  const ip = ipOfTarget(url);
  return ip === undefined
    ? {}
    : { checkServerIdentity: (_name, certificate) => checkServerIdentity(ip, certificate) };
}

function checkName(name: string): VerifyOptions {
  return {
    checkServerIdentity: (_host, { raw }) =>
      hasSubjectAltName(new X509Certificate(raw), name)
        ? undefined
        : new Error(
            `the server's certificate does not contain the name ${name} (CONFIG_GRPC_XDS_SERVER_TLS_SAN)`,
          ),
  };
}

async function loadPem(variable: string, path: string): Promise<Buffer | null> {
  return path === '' ? null : loadNamedFile({ variable, path, maxBytes: MAX_TLS_FILE_BYTES });
}

/**
 * Returns the server name for the TLS handshake if CONFIG_GRPC_XDS_SERVER_TLS_SAN is a DNS name. Addresses and URIs are
 * not allowed there (RFC 6066 section 3): gRPC then sends the host of the target, unless that is an address, too.
 */
function xdsServerName({ useTls, subjectAltName: name }: XdsServer): string | undefined {
  return useTls && name !== '' && !name.includes(':') && isIP(name) === 0 ? name : undefined;
}
