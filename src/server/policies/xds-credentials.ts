import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { checkServerIdentity, rootCertificates } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { type ChannelCredentials, credentials, type VerifyOptions } from '@grpc/grpc-js';
import { hasSubjectAltName } from '../../h2/tls-material.js';
import { ipOfTarget } from '../../runtime/no-server-name.js';
import { loadNamedFile } from '../named-file.js';
import { MAX_TLS_FILE_BYTES } from '../tls-files.js';
import type { XdsServer } from './xds-servers.js';

const CERT = 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT';
const KEY = 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY';
const CA = 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT';

/**
 * Returns a function that creates credentials for connections to a management server from the current content of the
 * files. It rejects with an Error that names the variable and the unusable file.
 */
export function xdsCredentials(server: XdsServer): () => Promise<ChannelCredentials> {
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

/** Returns a check that the certificate contains `name`, independent of the host of the connection. */
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
export function xdsServerName({ useTls, subjectAltName: name }: XdsServer): string | undefined {
  return useTls && name !== '' && !name.includes(':') && isIP(name) === 0 ? name : undefined;
}
