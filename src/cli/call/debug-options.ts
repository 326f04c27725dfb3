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
export const DEBUG_OPTIONS_HELP = `  --address <address>    the debug port of another server: host:port, http://host:port or https://host:port. Without
                         it that of the environment is asked: DEBUG_HOST and DEBUG_PORT, on loopback if they name
                         every address (127.0.0.1:${defaultOf('debugPort')} when unset)
  --token-file <file>    holds the token that the server wants (ADMIN_TOKENS_FILE); else the variable WEIR_ADMIN_TOKEN
                         has it. Never write a token as an argument: all users of a machine see those
  --tls-ca <file>        speak TLS, and trust these issuers (PEM); https:// alone trusts those Node.js ships
  --timeout <duration>   longest wait for one answer, such as 500ms or 10s (default 5s)
`;
