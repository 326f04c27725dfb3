import type { TlsFiles } from '../tls/tls-files.js';

/** Returns the arguments of a Redis that also serves TLS, on `port`, to clients without certificates. */
export function tlsArguments(
  { ca, serverCert, serverKey }: Pick<TlsFiles, 'ca' | 'serverCert' | 'serverKey'>,
  port: number,
): string[] {
  const files = ['--tls-cert-file', serverCert, '--tls-key-file', serverKey, '--tls-ca-cert-file', ca];
  return ['--tls-port', String(port), ...files, '--tls-auth-clients', 'no'];
}
