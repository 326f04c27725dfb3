/** Whether a text is `host:port`, with IPv6 addresses in brackets, or `unix:` and the path of a socket. */
export function isAddress(text: string): boolean {
  if (text.startsWith('unix:')) return text.length > 'unix:'.length;
  const port = Number(/^(?:\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(text)?.[1]);
  return port >= 1 && port <= 65_535;
}

/** The host of an address without brackets; '' for a socket. */
export function hostOf(address: string): string {
  return address.startsWith('unix:') ? '' : address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}
