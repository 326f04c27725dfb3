import { formatHostPort } from '../../grpc/grpc-server.js';
import type { Settings } from '../../server/settings/settings-table.js';

/** Returns whether a string is `host:port`, with IPv6 addresses in brackets, or `unix:<path>`. */
export function isAddress(text: string): boolean {
  if (text.startsWith('unix:')) return text.length > 'unix:'.length;
  const port = Number(/^(?:\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(text)?.[1]);
  return port >= 1 && port <= 65_535;
}

/** Without brackets; '' for a Unix socket. */
export function hostOf(address: string): string {
  return address.startsWith('unix:') ? '' : address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}

/** Returns the address at which a listener on this machine can be called. */
export function loopbackAddress(host: Settings['host'], port: number): string {
  if (host === '0.0.0.0' || host === '') return formatHostPort('127.0.0.1', port);
  return formatHostPort(host === '::' ? '::1' : host, port);
}
