import type { GoFlag } from './go-flags.js';

function lines(flags: readonly GoFlag[]): string {
  return flags.map(({ name, help }) => `  -${name.padEnd(20)} ${help}\n`).join('');
}

export const RATELIMIT_HELP = `Usage: weir ratelimit [argument…]

The service of envoyproxy/ratelimit, for deployments made for it: weir serve, without its flags. Settings are
environment variables. Like the original it ignores its arguments; a line of the log names them. In the image it is
also /bin/ratelimit.

Exit code: 0 after a drain; 1 when weir cannot start or go on, also for a variable with a bad value; no argument is
wrong, so never 2 for wrong arguments.
`;

/** The flags of envoyproxy/ratelimit's client, in the order in which it prints them. */
export const RATELIMIT_CLIENT_FLAGS: readonly GoFlag[] = [
  { name: 'descriptors', help: 'one descriptor, key=value,key=value…; once for each' },
  { name: 'dial_string', help: 'address of the server (default localhost:8081)' },
  { name: 'domain', help: 'domain of the policy' },
  { name: 'grpc-cert-file', help: 'file with the client certificate (PEM)' },
  { name: 'grpc-key-file', help: 'file with its key (PEM)' },
  { name: 'grpc-server-ca-file', help: 'file with the issuers of the server certificate (PEM)' },
  { name: 'grpc-use-tls', help: 'speak TLS', boolean: true },
  { name: 'oltp-protocol', help: 'refused: this client records no traces' },
];

export const RATELIMIT_CLIENT_HELP = `Usage: weir ratelimit-client -domain <domain> -descriptors key=value,… [-descriptors …]

The client of envoyproxy/ratelimit, for scripts made for it: the same flags, the same line of an answer. In the image
it is also /bin/ratelimit_client. weir check shows more, and makes more than one call.

${lines(RATELIMIT_CLIENT_FLAGS)}
Exit code: 0 when the call was answered, OVER_LIMIT included; 1 when it failed; 2 for wrong arguments.
`;

/** Those of its configuration check. */
export const RATELIMIT_CONFIG_CHECK_FLAGS: readonly GoFlag[] = [
  { name: 'config_dir', help: 'directory of the policy files; each file in it is read, of any name' },
  { name: 'merge_domain_configs', help: 'files with one domain are merged', boolean: true },
];

export const RATELIMIT_CONFIG_CHECK_HELP = `Usage: weir ratelimit-config-check -config_dir <directory> [-merge_domain_configs]

The configuration check of envoyproxy/ratelimit, for pipelines made for it: the same flags, the same lines, and every
error instead of the first. In the image it is also /bin/ratelimit_config_check.

${lines(RATELIMIT_CONFIG_CHECK_FLAGS)}
Exit code: 0 when all files are good, 1 when any is bad or the directory cannot be read, 2 for wrong arguments.
`;
