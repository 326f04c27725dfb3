import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContextOptions } from 'node:tls';

/** Certificates of a TLS server, as PEM text. */
export interface TlsMaterial {
  /** The server's certificate and its chain, up to the root. */
  readonly cert: string;
  readonly key: string;
  /** Issuers of client certificates. If set, every client must present a certificate (mTLS). */
  readonly clientCa: string | undefined;
}

export interface TlsOptions {
  readonly material: TlsMaterial;
  /** A DNS name, URI (SPIFFE) or IP address that a client's certificate must contain as subject alternative name. */
  readonly clientSan: string | undefined;
}

/** The certificates of a port, and their updates. */
export interface TlsSource {
  /** The initial certificates. */
  readonly options: TlsOptions;
  /** Calls `setTls` each time the certificates change. */
  follow(setTls: (material: TlsMaterial) => void): void;
}

/**
 * Cipher suites with forward secrecy and authenticated encryption only; RFC 9113 section 9.2.2 and appendix A advise
 * against all others. The cheapest suite comes first.
 */
const CIPHERS =
  'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20';

/** Names the invalid part of the TLS material and the reason. */
export class TlsMaterialError extends Error {
  override readonly name = 'TlsMaterialError';
  readonly part: keyof TlsMaterial;

  constructor(part: keyof TlsMaterial, message: string, options?: ErrorOptions) {
    super(message, options);
    this.part = part;
  }
}

/** Returns the options of node:tls for `material`. Throws {@link TlsMaterialError} if it cannot be used. */
export function secureContextOptions(material: TlsMaterial): SecureContextOptions {
  const certificate = readCertificate('cert', material.cert);
  const key = readKey(material.key);
  if (!certificate.checkPrivateKey(key)) {
    throw new TlsMaterialError('key', 'the key does not belong to the certificate');
  }
  if (material.clientCa !== undefined) readCertificate('clientCa', material.clientCa);
  const options: SecureContextOptions = {
    cert: material.cert,
    key: material.key,
    ciphers: CIPHERS,
    minVersion: 'TLSv1.2',
    ...(material.clientCa === undefined ? {} : { ca: material.clientCa }),
  };
  try {
    createSecureContext(options);
  } catch (error) {
    throw new TlsMaterialError(
      'cert',
      `the certificate cannot be used for TLS: ${(error as Error).message}`,
      { cause: error },
    );
  }
  return options;
}

function readCertificate(part: 'cert' | 'clientCa', pem: string): X509Certificate {
  try {
    if (pem.includes('-----BEGIN')) return new X509Certificate(pem);
  } catch (error) {
    // OpenSSL's message does not help if the file contains something else.
    const why = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)
      ? 'the file contains a private key'
      : (error as Error).message;
    throw new TlsMaterialError(part, `not a PEM certificate: ${why}`, { cause: error });
  }
  throw new TlsMaterialError(
    part,
    'not a PEM certificate: the file has no line "-----BEGIN CERTIFICATE-----"',
  );
}

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    // OpenSSL's message is not readable for people, and Node's might quote the key.
    throw new TlsMaterialError('key', 'not a PEM private key, or the key has a passphrase', { cause: error });
  }
}

/**
 * Returns whether the certificate contains `name` as subject alternative name: a DNS name, an IP address, or a URI. DNS
 * names are compared as clients do: case-insensitively, and `*.example.com` in the certificate matches one label (RFC
 * 6125 section 6.4). URIs are compared byte by byte. The common name of the subject is ignored.
 */
export function hasSubjectAltName(certificate: X509Certificate, name: string): boolean {
  const address = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name;
  if (isIP(address) !== 0) return certificate.checkIP(address) !== undefined;
  if (name.includes(':')) return uriNames(certificate.subjectAltName).includes(name);
  // OpenSSL interprets a leading dot as any subdomain.
  return !name.startsWith('.') && certificate.checkHost(name, { subject: 'never' }) !== undefined;
}

/**
 * Returns the URIs in Node's format `DNS:a, URI:b, URI:"with, comma"`. Node writes names with special characters as
 * JSON.
 */
function uriNames(subjectAltName: string | undefined): readonly string[] {
  const names: string[] = [];
  const entry = /([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/gy;
  for (const [, type, value = ''] of (subjectAltName ?? '').matchAll(entry)) {
    if (type === 'URI') names.push(value.startsWith('"') ? (JSON.parse(value) as string) : value);
  }
  return names;
}
