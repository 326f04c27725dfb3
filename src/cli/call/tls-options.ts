/** The options of a command that speaks to a server over TLS, for node:util's parseArgs. */
export const TLS_OPTIONS = {
  tls: { type: 'boolean', default: false },
  ca: { type: 'string' },
  cert: { type: 'string' },
  key: { type: 'string' },
} as const;

/** How to reach a server: in clear text, or over TLS with files in PEM. */
export interface ChannelOptions {
  readonly tls: boolean;
  /** File with the issuers of the server's certificate; undefined: those Node ships. */
  readonly ca: string | undefined;
  /** Files with a client certificate and its key, for a server that asks for one. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** The parsed {@link TLS_OPTIONS}; a sentence instead where they contradict each other. Naming a file means TLS. */
export function readTlsOptions(values: {
  readonly tls?: boolean;
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}): ChannelOptions | string {
  const { ca, cert, key } = values;
  if ((cert === undefined) !== (key === undefined)) return '--cert and --key go together';
  const tls = values.tls === true || ca !== undefined || cert !== undefined;
  return { tls, ca, cert, key };
}
