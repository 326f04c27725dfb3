const IPV4 = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/**
 * Makes a text fit to be a part of a statistic's name: `:` and `|`, which end a name on the wire, and the dots of an
 * IPv4 address become `_`, as in the reference. So do control characters, which there break lines in two.
 */
export function sanitiseStatName(name: string): string {
  return (
    name
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not pass
      .replaceAll(/[:|\u0000-\u001f\u007f]/g, '_')
      .replaceAll(IPV4, (address) => address.replaceAll('.', '_'))
  );
}
