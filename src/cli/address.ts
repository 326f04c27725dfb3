/** Whether a text is `host:port`; IPv6 addresses stand in brackets. */
export function isAddress(text: string): boolean {
  const port = Number(/^(?:\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(text)?.[1]);
  return port >= 1 && port <= 65_535;
}
