/** Options of commands that call a server over TLS, for `parseArgs` of node:util. */
export const TLS_OPTIONS = {
  tls: { type: 'boolean', default: false },
  ca: { type: 'string' },
  cert: { type: 'string' },
  key: { type: 'string' },
} as const;

/** How to connect to a server: in clear text, or over TLS with PEM files. */
export interface ChannelOptions {
  readonly tls: boolean;
  /** File with the CAs of the server's certificate; undefined trusts the CAs of Node.js. */
  readonly ca: string | undefined;
  /** Files with a client certificate and its key, for servers that require one. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/**
 * Converts the values of {@link TLS_OPTIONS}. A file implies TLS. Returns an error message if only one of `--cert` and
 * `--key` is set.
 */
export function readTlsOptions(values: {
  readonly tls?: boolean;
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}): ChannelOptions | string {
  const { ca, cert, key } = values;
  if ((cert === undefined) !== (key === undefined)) return '--cert and --key must be set together';
  const tls = values.tls === true || ca !== undefined || cert !== undefined;
  return { tls, ca, cert, key };
}
