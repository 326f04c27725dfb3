import type { GoFlag } from './go-flags.js';

function lines(flags: readonly GoFlag[]): string {
  return flags.map(({ name, help }) => `  -${name.padEnd(20)} ${help}\n`).join('');
}

export const RATELIMIT_HELP = `Usage: weir ratelimit [argument…]

Runs weir serve without flags, for deployments of envoyproxy/ratelimit. Settings are environment variables. Arguments
are logged and ignored, as in envoyproxy/ratelimit. The image also contains this command as /bin/ratelimit.

Exit code: 0 after a drain, 1 if a variable is invalid, or if weir cannot start or continue. weir never exits with
code 2, because weir ratelimit ignores its arguments.
`;

/** Flags of envoyproxy/ratelimit's client, in the order in which it prints them. */
export const RATELIMIT_CLIENT_FLAGS: readonly GoFlag[] = [
  { name: 'descriptors', help: 'a descriptor as key=value,key=value…; repeat the flag for more descriptors' },
  { name: 'dial_string', help: 'address of the server (default localhost:8081)' },
  { name: 'domain', help: 'domain of the policy' },
  { name: 'grpc-cert-file', help: 'file with the client certificate (PEM)' },
  { name: 'grpc-key-file', help: 'file with the private key of the client certificate (PEM)' },
  { name: 'grpc-server-ca-file', help: 'file with the CAs of the server certificate (PEM)' },
  { name: 'grpc-use-tls', help: 'use TLS', boolean: true },
  { name: 'oltp-protocol', help: 'not supported, because this client does not record traces' },
];

export const RATELIMIT_CLIENT_HELP = `Usage: weir ratelimit-client -domain <domain> -descriptors key=value,… [-descriptors …]

Sends one request, with the flags and output of the client of envoyproxy/ratelimit. The image also contains this
command as /bin/ratelimit_client. For more details or several calls, use weir check.

${lines(RATELIMIT_CLIENT_FLAGS)}
Exit code: 0 if the call succeeded, even with OVER_LIMIT, 1 if the call failed, 2 for invalid arguments.
`;

/** Flags of envoyproxy/ratelimit's configuration check. */
export const RATELIMIT_CONFIG_CHECK_FLAGS: readonly GoFlag[] = [
  { name: 'config_dir', help: 'directory of policy files; all files in it are read' },
  { name: 'merge_domain_configs', help: 'merge files that have the same domain', boolean: true },
];

export const RATELIMIT_CONFIG_CHECK_HELP = `Usage: weir ratelimit-config-check -config_dir <directory> [-merge_domain_configs]

Checks policy files, with the flags and output of envoyproxy/ratelimit's ratelimit_config_check. Unlike that program,
weir prints all errors, not only the first. The image also contains this command as /bin/ratelimit_config_check.

${lines(RATELIMIT_CONFIG_CHECK_FLAGS)}
Exit code: 0 if all files are valid, 1 if any is invalid or the directory cannot be read, 2 for invalid arguments.
`;
