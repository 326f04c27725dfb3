import type { Socket } from 'node:net';

/** `host:port`, with brackets round IPv6 addresses. */
export function formatHostPort(address: string | undefined, port: number | undefined): string {
  if (address === undefined) return 'unknown';
  const host = address.includes(':') ? `[${address}]` : address;
  return port === undefined ? host : `${host}:${port}`;
}

/**
 * Whom a socket leads to, for logs: `host:port`. A Unix domain socket has no such name: then the `path` we listen on.
 */
export function peerName(socket: Socket, path: string | undefined): string {
  return path ?? formatHostPort(socket.remoteAddress, socket.remotePort);
}
