import { isIP } from 'node:net';

/**
 * Server name for TLS handshakes with an IP address. IP addresses are not allowed as server names (RFC 6066, section
 * 3), and Node.js warns about them (DEP0123). No certificate contains a name below `invalid` (RFC 6761, section 6.4).
 */
const NO_SERVER_NAME = 'address.invalid';

/** Scheme and authority of a gRPC target, as in `dns:///host:port`. */
const SCHEME = /^(?:dns|ipv4|ipv6):(?:\/\/[^/]*\/)?/;

/**
 * Returns the IP address in a gRPC target, without brackets: `127.0.0.1:8081`, `dns:///[::1]:8081`, or the first of
 * `ipv4:127.0.0.1:8081,127.0.0.2:8081`. Returns undefined if the target is a host name or a socket.
 */
export function ipOfTarget(target: string): string | undefined {
  const [first = ''] = target.replace(SCHEME, '').split(',');
  const host = isIP(first) === 0 ? first.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') : first;
  return isIP(host) === 0 ? undefined : host;
}

/**
 * Returns the gRPC client option that omits an IP address from the TLS handshake. Returns no option for a host name.
 * Callers must check the certificate against {@link ipOfTarget}, because gRPC would check it against the replaced
 * server name.
 */
export function withoutServerName(target: string): { readonly 'grpc.ssl_target_name_override'?: string } {
  return ipOfTarget(target) === undefined ? {} : { 'grpc.ssl_target_name_override': NO_SERVER_NAME };
}
