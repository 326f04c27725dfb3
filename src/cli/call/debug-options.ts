import { defaultOf } from '../../server/settings/settings-table.js';

/** Options of every command that asks the debug port, for node:util's parseArgs. */
export const DEBUG_OPTIONS = {
  address: { type: 'string' },
  'token-file': { type: 'string' },
  'tls-ca': { type: 'string' },
  timeout: { type: 'string' },
} as const;

/** What was given of {@link DEBUG_OPTIONS}: which server is asked, and how. */
export type DebugTarget = Readonly<Partial<Record<keyof typeof DEBUG_OPTIONS, string | undefined>>>;

/** {@link DEBUG_OPTIONS} in a help text. */
export const DEBUG_OPTIONS_HELP = `  --address <address>    debug port of the server: host:port, http://host:port or https://host:port (default:
                         DEBUG_HOST and DEBUG_PORT of the environment, or 127.0.0.1:${defaultOf('debugPort')})
  --token-file <file>    file with the token, if the server requires one (ADMIN_TOKENS_FILE); or set WEIR_ADMIN_TOKEN
  --tls-ca <file>        use TLS, and trust these CAs (PEM); without it, https:// trusts the CAs that Node.js trusts
  --timeout <duration>   timeout of a call, such as 500ms or 10s (default 5s)
`;
