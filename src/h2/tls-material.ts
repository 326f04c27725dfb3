import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContextOptions } from 'node:tls';

/** Certificates of a TLS server, as PEM texts. */
export interface TlsMaterial {
  /** The server's certificate, with what leads from it to the root. */
  readonly cert: string;
  readonly key: string;
  /** Issuers of client certificates; with them every client must show one (mTLS). */
  readonly clientCa: string | undefined;
}

export interface TlsOptions {
  readonly material: TlsMaterial;
  /** A DNS name, URI (SPIFFE) or address that a client's certificate must hold as subject alternative name. */
  readonly clientSan: string | undefined;
}

/** The certificates of a port, whoever reads them. */
export interface TlsSource {
  /** Those to begin with. */
  readonly options: TlsOptions;
  /** Hands changed certificates to `setTls`. */
  follow(setTls: (material: TlsMaterial) => void): void;
}

/**
 * Suites with forward secrecy and authenticated encryption only: the rest is what RFC 9113 section 9.2.2 and appendix A
 * advise against. The cheapest comes first.
 */
const CIPHERS =
  'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20';

/** Which of the three texts is bad, and why. */
export class TlsMaterialError extends Error {
  override readonly name = 'TlsMaterialError';
  readonly part: keyof TlsMaterial;

  constructor(part: keyof TlsMaterial, message: string, options?: ErrorOptions) {
    super(message, options);
    this.part = part;
  }
}

/** What node:tls wants for `material`. Throws {@link TlsMaterialError} when it cannot be used. */
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
    throw new TlsMaterialError('cert', `not usable for TLS: ${(error as Error).message}`, { cause: error });
  }
  return options;
}

function readCertificate(part: 'cert' | 'clientCa', pem: string): X509Certificate {
  try {
    if (pem.includes('-----BEGIN')) return new X509Certificate(pem);
  } catch (error) {
    // OpenSSL's own words are no help where the file is another one.
    const why = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)
      ? 'the file holds a private key'
      : (error as Error).message;
    throw new TlsMaterialError(part, `no PEM certificate: ${why}`, { cause: error });
  }
  throw new TlsMaterialError(part, 'no PEM certificate: it has no line "-----BEGIN CERTIFICATE-----"');
}

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    // OpenSSL's own words say nothing to people, and Node's might quote the key.
    throw new TlsMaterialError('key', 'no PEM private key, or one with a passphrase', { cause: error });
  }
}

/**
 * Whether the certificate holds `name` as subject alternative name: a DNS name as clients compare it with a server's
 * (any case, `*.example.com` in the certificate stands for one label; RFC 6125 section 6.4), an IP address, or a URI,
 * byte for byte. The subject's common name does not count.
 */
export function hasSubjectAltName(certificate: X509Certificate, name: string): boolean {
  const address = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name;
  if (isIP(address) !== 0) return certificate.checkIP(address) !== undefined;
  if (name.includes(':')) return uriNames(certificate.subjectAltName).includes(name);
  // To OpenSSL a leading dot means any subdomain.
  return !name.startsWith('.') && certificate.checkHost(name, { subject: 'never' }) !== undefined;
}

/**
 * The URIs of Node's `DNS:a, URI:b, URI:"with, comma"`; a name with characters that could mislead is written as JSON.
 */
function uriNames(subjectAltName: string | undefined): readonly string[] {
  const names: string[] = [];
  const entry = /([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/gy;
  for (const [, type, value = ''] of (subjectAltName ?? '').matchAll(entry)) {
    if (type === 'URI') names.push(value.startsWith('"') ? (JSON.parse(value) as string) : value);
  }
  return names;
}
