import { isIP } from 'node:net';

/**
 * The name to ask for in a TLS handshake with an IP address, which may not be asked for (RFC 6066 section 3): Node.js
 * warns of that (DEP0123). No server has a certificate for a name below `invalid` (RFC 6761 section 6.4).
 */
const NO_SERVER_NAME = 'address.invalid';

/** Scheme and authority of a gRPC target, as in `dns:///host:port`. */
const SCHEME = /^(?:dns|ipv4|ipv6):(?:\/\/[^/]*\/)?/;

/**
 * The IP address that a gRPC target names, without brackets: `127.0.0.1:8081`, `dns:///[::1]:8081`,
 * `ipv4:127.0.0.1:8081,127.0.0.2:8081`, of which it is the first. Undefined where the target names a host or a socket.
 */
export function ipOfTarget(target: string): string | undefined {
  const [first = ''] = target.replace(SCHEME, '').split(',');
  const host = isIP(first) === 0 ? first.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') : first;
  return isIP(host) === 0 ? undefined : host;
}

/**
 * The option of a gRPC client that keeps an IP address out of the TLS handshake; nothing for a name. Whoever uses it
 * checks the certificate against {@link ipOfTarget}, since gRPC would check it against the name asked for.
 */
export function withoutServerName(target: string): { readonly 'grpc.ssl_target_name_override'?: string } {
  return ipOfTarget(target) === undefined ? {} : { 'grpc.ssl_target_name_override': NO_SERVER_NAME };
}
