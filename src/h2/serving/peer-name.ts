import type { Socket } from 'node:net';

/** Formats an address as `host:port`, with brackets around IPv6 addresses. */
export function formatHostPort(address: string | undefined, port: number | undefined): string {
  if (address === undefined) return 'unknown';
  const host = address.includes(':') ? `[${address}]` : address;
  return port === undefined ? host : `${host}:${port}`;
}

/**
 * Returns the name of the peer for logs: `host:port`, or, for a Unix domain socket, the `path` that the server listens
 * on.
 */
export function peerName(socket: Socket, path: string | undefined): string {
  return path ?? formatHostPort(socket.remoteAddress, socket.remotePort);
}
