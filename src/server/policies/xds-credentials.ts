import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { checkServerIdentity, rootCertificates } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { type ChannelCredentials, credentials, type VerifyOptions } from '@grpc/grpc-js';
import { hasSubjectAltName } from '../../h2/tls-material.js';
import { ipOfTarget } from '../../no-server-name.js';
import { loadNamedFile } from '../settings/named-file.js';
import type { Settings } from '../settings/settings-table.js';
import { MAX_TLS_FILE_BYTES } from '../tls-files.js';

const CERT = 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT';
const KEY = 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY';
const CA = 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT';

/** Makes credentials for a connection to the management server. */
export class XdsCredentials {
  readonly #settings: Settings;
  /** What was made last, and of which files: with all the issuers that Node ships it takes some 60 ms. */
  #last: { readonly files: readonly (Buffer | null)[]; readonly made: ChannelCredentials } | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Of the files as they are now. Rejects with an Error that names the variable and a file that cannot be used. */
  async get(): Promise<ChannelCredentials> {
    const { xdsUseTls, xdsTlsCert, xdsTlsKey, xdsTlsCaCert } = this.#settings;
    if (!xdsUseTls) return credentials.createInsecure();
    const files = [
      await loadPem(CA, xdsTlsCaCert),
      await loadPem(KEY, xdsTlsKey),
      await loadPem(CERT, xdsTlsCert),
    ] as const;
    const [ca, key, cert] = files;
    if (this.#last !== undefined && isDeepStrictEqual(this.#last.files, files)) return this.#last.made;
    try {
      // Node.js passes over a text in which there is no certificate, and nobody would be trusted.
      if (ca !== null) new X509Certificate(ca);
      const roots = ca === null ? null : withBundledRoots(ca);
      const made = credentials.createSsl(roots, key, cert, verification(this.#settings));
      this.#last = { files, made };
      return made;
    } catch (error) {
      throw new Error(
        `${CA}, ${CERT}, ${KEY}: not usable as PEM certificates and key: ${(error as Error).message}`,
      );
    }
  }
}

/** As in envoyproxy/ratelimit, where one's own issuers come beside the system's. */
function withBundledRoots(ca: Buffer): Buffer {
  return Buffer.from(`${rootCertificates.join('\n')}\n${ca}`);
}

/** How the name in the certificate is checked. An IP address is not asked for, so gRPC cannot check it. */
function verification({ xdsTlsSan, xdsServerUrl }: Settings): VerifyOptions {
  if (xdsTlsSan !== '') return checkName(xdsTlsSan);
  const ip = ipOfTarget(xdsServerUrl);
  return ip === undefined
    ? {}
    : { checkServerIdentity: (_name, certificate) => checkServerIdentity(ip, certificate) };
}

/** The certificate must hold this name, whatever host the connection leads to. */
function checkName(name: string): VerifyOptions {
  return {
    checkServerIdentity: (_host, { raw }) =>
      hasSubjectAltName(new X509Certificate(raw), name)
        ? undefined
        : new Error(
            `the server's certificate does not hold the name ${name} (CONFIG_GRPC_XDS_SERVER_TLS_SAN)`,
          ),
  };
}

async function loadPem(variable: string, path: string): Promise<Buffer | null> {
  return path === '' ? null : loadNamedFile({ variable, path, maxBytes: MAX_TLS_FILE_BYTES });
}

/**
 * The name to ask for in the handshake where CONFIG_GRPC_XDS_SERVER_TLS_SAN gives one. Addresses and URIs are none (RFC
 * 6066 section 3): then the host of the target is asked for, unless it is an address as well.
 */
export function xdsServerName({ xdsUseTls, xdsTlsSan }: Settings): string | undefined {
  return xdsUseTls && xdsTlsSan !== '' && !xdsTlsSan.includes(':') && isIP(xdsTlsSan) === 0
    ? xdsTlsSan
    : undefined;
}
