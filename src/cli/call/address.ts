/** Returns whether a string is `host:port`, with IPv6 addresses in brackets, or `unix:<path>`. */
export function isAddress(text: string): boolean {
  if (text.startsWith('unix:')) return text.length > 'unix:'.length;
  const port = Number(/^(?:\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(text)?.[1]);
  return port >= 1 && port <= 65_535;
}

/** Returns the host of an address, without brackets; '' for a Unix socket. */
export function hostOf(address: string): string {
  return address.startsWith('unix:') ? '' : address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}
