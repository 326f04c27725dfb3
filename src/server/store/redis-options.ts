import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type ConnectionOptions, createSecureContext, rootCertificates } from 'node:tls';
import { timerMs } from '../../limiter/clock.js';
import {
  DEFAULT_RETRY,
  type LoginListeners,
  type LoginSource,
  parseLogin,
  type RedisLogin,
  type RetryPauses,
} from '../../storage/redis/connection/connection-options.js';
import type { RedisAddress } from '../../storage/redis/connection/redis-address.js';
import { DEFAULT_KEY_PREFIX } from '../../storage/redis/redis-key.js';
import type { RedisStoreOptions } from '../../storage/redis/redis-store-options.js';
import { FollowedFiles, readNamedFile } from '../followed-files.js';
import { type RedisInstance, readRedisAddress, redisInstance } from '../settings/redis-address-settings.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';

/** The store options of REDIS_URL and its related settings. Throws {@link StartError}. */
export function mainRedis(settings: Settings): RedisStoreOptions {
  return instanceOptions(settings, redisInstance(settings, 'REDIS'));
}

/**
 * Returns the store options of REDIS_PERSECOND_URL and its related settings, or undefined without a second Redis.
 * Throws {@link StartError}.
 */
export function perSecondRedis(settings: Settings): RedisStoreOptions | undefined {
  return settings.perSecond
    ? instanceOptions(settings, redisInstance(settings, 'REDIS_PERSECOND'))
    : undefined;
}

function instanceOptions(settings: Settings, instance: RedisInstance): RedisStoreOptions {
  const { prefix, timeout, sentinelAuth } = instance;
  const address = addressOf(instance);
  const tls = address.tls ? tlsOptions(settings) : undefined;
  return {
    address,
    tls,
    sentinelLogin: parseLogin(sentinelAuth),
    prefix,
    login: loginSource(instance),
    startup: startupPauses(settings),
    timeoutMicros: timeout ?? settings.redisTimeout,
    countDeniedHits: !settings.stopIncrementWhenOver,
    maxInFlight: settings.redisMaxInFlight,
    keysPerCall: settings.redisBatchKeys,
    tellsTime: settings.decisionLogSample !== undefined,
    keyPrefix: settings.cacheKeyPrefix + DEFAULT_KEY_PREFIX,
  };
}

function addressOf(instance: RedisInstance): RedisAddress {
  const address = readRedisAddress(instance, parseLogin(instance.auth));
  if ('sentence' in address) {
    throw new StartError([`${address.variables.join(', ')}: ${address.sentence}`]);
  }
  return address;
}

/** Returns the source of a login that may change, or undefined if the login is fixed. Throws {@link StartError}. */
function loginSource({ prefix, authFile }: RedisInstance): LoginSource | undefined {
  return authFile === '' ? undefined : new LoginFile(`${prefix}_AUTH_FILE`, authFile);
}

/**
 * Returns the pauses between attempts until Redis is available for the first time. The usual pauses apply to unset
 * values.
 */
function startupPauses({ redisStartupInitial, redisStartupMax }: Settings): RetryPauses {
  const ms = (micros: number | undefined, usual: number): number =>
    micros === undefined || micros === 0 ? usual : timerMs(micros);
  const initialMs = ms(redisStartupInitial, DEFAULT_RETRY.initialMs);
  return { initialMs, maxMs: ms(redisStartupMax, Math.max(initialMs, DEFAULT_RETRY.maxMs)) };
}

function tlsOptions(settings: Settings): ConnectionOptions {
  const read = (variable: string, file: string): string => {
    try {
      return readNamedFile(variable, file).toString();
    } catch (error) {
      throw new StartError([(error as Error).message]);
    }
  };
  const { redisTlsCaCert, redisTlsClientCert, redisTlsClientKey } = settings;
  if ((redisTlsClientCert === '') !== (redisTlsClientKey === '')) {
    const [set, unset] = ['REDIS_TLS_CLIENT_CERT', 'REDIS_TLS_CLIENT_KEY'];
    const missing = redisTlsClientKey === '' ? unset : set;
    throw new StartError([
      `${missing}: this variable is not set, but a client certificate needs its key, and the key needs ` +
        'its certificate; set both REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY, or neither',
    ]);
  }
  const isCertificate = (pem: string) => new X509Certificate(pem);
  const [ca, cert, key] = (
    [
      ['REDIS_TLS_CACERT', redisTlsCaCert, NO_CERTIFICATE, isCertificate],
      ['REDIS_TLS_CLIENT_CERT', redisTlsClientCert, NO_CERTIFICATE, isCertificate],
      ['REDIS_TLS_CLIENT_KEY', redisTlsClientKey, NO_KEY, createPrivateKey],
    ] as const
  ).map(([variable, file, problem, check]) => {
    if (file === '') return undefined;
    const pem = read(variable, file);
    orStartError(`${variable}: ${file}`, problem, () => check(pem));
    return pem;
  });
  const options = {
    ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...(settings.redisTlsSkipHostname ? { checkServerIdentity: () => undefined } : {}),
  };
  orStartError(
    `REDIS_TLS_CLIENT_KEY: ${redisTlsClientKey}`,
    `does not belong to the certificate in REDIS_TLS_CLIENT_CERT (${redisTlsClientCert}); specify this ` +
      "certificate's private key",
    () => createSecureContext(options),
  );
  return options;
}

const NO_CERTIFICATE = 'is not a PEM file with a certificate; specify a PEM file that contains a certificate';
const NO_KEY =
  'is not a PEM file with a key, or the key has a passphrase; specify a key without a passphrase';

/**
 * Runs `make`, and throws a {@link StartError} from `what` and `sentence` if it throws. The message never contains text
 * of a file.
 */
function orStartError(what: string, sentence: string, make: () => unknown): void {
  try {
    make();
  } catch {
    throw new StartError([`${what} ${sentence}`]);
  }
}

/** Maximum size of the file, in bytes. */
export const MAX_LOGIN_FILE_BYTES = 64 * 1024;

/** A login in a file. It is read for each connection, and when the file changes. */
export class LoginFile implements LoginSource {
  readonly #file: FollowedFiles<RedisLogin>;
  readonly #listeners = new Set<LoginListeners>();

  /** Reads the file that a setting such as REDIS_AUTH_FILE names. Throws StartError if it cannot be read. */
  constructor(variable: string, path: string) {
    this.#file = new FollowedFiles(
      [{ variable, path, maxBytes: MAX_LOGIN_FILE_BYTES }],
      ([text = ''], previous) => {
        const login = parseLogin(text.replace(/\r?\n$/, ''));
        // Programs that write the file in place truncate it first.
        if (login.password === undefined && previous?.password !== undefined)
          throw new Error(`${variable}: ${path} is empty; write the password into the file`);
        return login;
      },
    );
    this.#file.follow({
      read: (login, { username, password }) => {
        this.#first()?.failed(undefined);
        if (login.username === username && login.password === password) return;
        for (const { renewed } of this.#listeners) renewed(login);
      },
      failed: (sentence) => this.#first()?.failed(`${sentence}; the previous login stays in use`),
    });
  }

  async login(): Promise<RedisLogin> {
    await this.#file.refresh();
    return this.#file.content;
  }

  follow(listeners: LoginListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  close(): void {
    this.#file.close();
  }

  #first(): LoginListeners | undefined {
    const [first] = this.#listeners;
    return first;
  }
}
