const IPV4 = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/**
 * Escapes a string for the name of a statistic. As in the reference, `:` and `|`, which end a name on the wire, and the
 * dots of IPv4 addresses become `_`. So do control characters, which break lines in the reference.
 */
export function sanitiseStatName(name: string): string {
  return (
    name
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not pass
      .replaceAll(/[:|\u0000-\u001f\u007f]/g, '_')
      .replaceAll(IPV4, (address) => address.replaceAll('.', '_'))
  );
}
