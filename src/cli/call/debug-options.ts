import { defaultOf } from '../../server/settings/settings-table.js';

/** Options of all commands that call the debug port, for `parseArgs` of node:util. */
export const DEBUG_OPTIONS = {
  address: { type: 'string' },
  'token-file': { type: 'string' },
  'tls-ca': { type: 'string' },
  timeout: { type: 'string' },
} as const;

/** Values of {@link DEBUG_OPTIONS}: the server to call, and how to call it. */
export type DebugTarget = Readonly<Partial<Record<keyof typeof DEBUG_OPTIONS, string | undefined>>>;

export const DEBUG_OPTIONS_HELP = `  --address <address>    debug port of the server: host:port, http://host:port or https://host:port (default:
                         DEBUG_HOST and DEBUG_PORT in the environment, or 127.0.0.1:${defaultOf('debugPort')})
  --token-file <file>    file with the token, if the server requires one (ADMIN_TOKENS_FILE); or set WEIR_ADMIN_TOKEN
  --tls-ca <file>        use TLS, and trust these CAs (PEM); without --tls-ca, https:// trusts the CAs of Node.js
  --timeout <duration>   timeout of a call, such as 500ms or 10s (default 5s)
`;
