import { defaultOf, inertByReason, SETTINGS } from '../server/settings/settings-table.js';
import { DEBUG_OPTIONS_HELP } from './call/debug-options.js';
import { LOAD_OPTIONS_HELP } from './load-options.js';
import { wrapped } from './table.js';

/** A command in the list of `weir --help`. */
export interface CommandHelp {
  readonly usage: string;
  readonly summary: string;
}

const COMMANDS: readonly CommandHelp[] = [
  {
    usage: 'init [<folder>]',
    summary: 'write a starter policy, Envoy configuration and compose file',
  },
  { usage: 'serve [--<setting> <value>]', summary: 'run the rate limit service' },
  { usage: 'check-config <path>…', summary: 'check policy files and print every error' },
  {
    usage: 'explain <path> --domain <domain> key=value…',
    summary: 'show which rule and bucket a descriptor matches',
  },
  { usage: 'diff <old> <new>', summary: 'compare two policies, and show whether any limit tightens' },
  {
    usage: 'replay --policy <path> <log>…',
    summary: 'decide a log again with another policy, and show who would be denied',
  },
  {
    usage: 'check [--address <host:port>] key=value…',
    summary: 'send a request to a running server and show the answer',
  },
  {
    usage: 'health [--address <host:port>]',
    summary: 'check the health of a running server, for container probes',
  },
  {
    usage: 'bucket show|grant|reset|release key=value…',
    summary: 'show or refill the buckets of one caller',
  },
  {
    usage: 'top [--all <addresses>]',
    summary: 'show the callers with the most denied requests or used hits',
  },
];

/** Commands for users of envoyproxy/ratelimit. */
const REFERENCE_COMMANDS: readonly CommandHelp[] = [
  { usage: 'migrate <file or directory>…', summary: 'report what changes for an installation' },
  { usage: 'ratelimit', summary: 'run the service with environment variables only' },
  {
    usage: 'ratelimit-client -domain <domain> -descriptors key=value,…',
    summary: 'send a request, with the flags of ratelimit_client',
  },
  {
    usage: 'ratelimit-config-check -config_dir <directory>',
    summary: 'check policies, with the flags of ratelimit_config_check',
  },
];

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('');
}

export function mainHelp(): string {
  return `weir: a rate limit decision service for Envoy

Usage: weir <command> [options]

${columns(COMMANDS.map(({ usage, summary }) => [usage, summary]))}
For users of envoyproxy/ratelimit:

${columns(REFERENCE_COMMANDS.map(({ usage, summary }) => [usage, summary]))}
  weir <command> --help  show the help of a command
  weir --version         show the version

Exit codes:
  0         success
  1         failure, such as an invalid policy or variable, a port in use, or a server that does not answer
  2         invalid command line: an unknown command or option, or an invalid value of a flag
  3         weir diff: a change tightens the policy; weir replay: --max-newly-denied is exceeded
  4         weir replay: the log does not support a verdict about --max-newly-denied
  143, 130  terminated by SIGTERM or SIGINT; weir serve exits with these codes only after a second signal
`;
}

/** Wraps a paragraph into indented lines of at most `width` characters, without the indent. */
function wrap(paragraph: string, width: number, indent: string): string {
  return wrapped(paragraph, width)
    .map((line) => `${indent}${line}\n`)
    .join('');
}

/** Returns the ignored variables of envoyproxy/ratelimit, grouped by the reason why weir ignores them. */
function inertHelp(): string {
  return [...inertByReason()]
    .map(([reason, names]) => `${wrap(names.join(', '), 94, '  ')}${wrap(reason, 90, '      ')}`)
    .join('');
}

/** Returns the text of `weir serve --help`: every setting with its flag, variable and default. */
export function serveHelp(): string {
  const settings = SETTINGS.map(({ name, flag, type, default: value, help }) => {
    const shown = value === '' ? 'unset' : value;
    return `  ${flag} <${type.replaceAll('_', ' ')}>  ${name}, default ${shown}\n${wrap(help, 90, '      ')}`;
  });
  return `Usage: weir serve [--<setting> <value>]

Serves envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit over gRPC.

Each setting is an environment variable and a flag; a flag overrides its variable. SIGHUP reloads the policies. SIGTERM
and SIGINT drain and exit; a second signal exits immediately.

Exit code: 0 after a drain, 1 if a variable is invalid, or if weir cannot start or continue, 2 if a flag is invalid.

${settings.join('')}
Variables of envoyproxy/ratelimit that weir accepts and ignores:

${inertHelp()}`;
}

export const INIT_HELP = `Usage: weir init [options] [<folder>]

Writes a commented policy, an Envoy configuration with a placeholder for your service, and a Docker Compose file that
runs both with weir and Redis. The command then prints the next steps. If one of the files already exists, weir
writes no files.

  <folder>       folder for the files (default: the current folder); it is created if necessary
  --concurrency  writes a limit on concurrent requests of each customer
  --llm          writes token budgets for calls of a language model, which reserve an estimate until the use is known

Exit code: 0 if the files were written, 1 if not, 2 for invalid arguments.
`;

export const CHECK_CONFIG_HELP = `Usage: weir check-config [options] <path>…

Checks policy files and prints every error with its file, line, column and path in the document. <path> is a policy
file, a directory of policy files, or a Kubernetes manifest with policies in ConfigMaps. A directory without policy
files is an error. The command does not change any files.

${LOAD_OPTIONS_HELP}
Exit code: 0 if all files are valid, even with warnings, 1 if any file is invalid, 2 for invalid arguments.
`;

export const EXPLAIN_HELP = `Usage: weir explain <path> --domain <domain> key=value…

Shows how a policy handles one descriptor: the entries after \`derive\`, the node that matches, the rule with its phase,
statistic and headers, the answer to denied callers, and the key of the bucket in Redis. If no rule matches, the
command shows what would have to change. API keys are never shown.

The arguments key=value are the entries of the descriptor, in order. If a request has several descriptors, run the
command for each one.

  --domain <domain>
                   domain of the policy; required if the policy files contain several domains
  --redis          show which Redis server keeps the bucket. Set the same REDIS_* variables and CACHE_KEY_PREFIX as the
                   server. weir queries the Redis Cluster or the Sentinels, but does not read or change buckets
  --json           print JSON; docs/reference/explain-json.md describes the fields
${LOAD_OPTIONS_HELP}
Exit code: 0 if a rule matches, 1 if no rule matches, the policy is invalid or, with --redis, Redis does not answer,
2 for invalid arguments.
`;

export const DIFF_HELP = `Usage: weir diff [--json] <old> <new>

Compares two policies, each a file or a directory, rule by rule. Prints a sentence for each limit that is added,
removed, tightened or loosened, and for other changes that affect answers: phases, matching order, derive. The command
does not change any files.

A change tightens if it could deny a request that the old policy allows, now or after a scheduled change of phase, or if
the old and the new limits cannot be compared, such as quotas, chains and rules with replaces, which affect other
limits. API keys are never shown.

  --json           print JSON
${LOAD_OPTIONS_HELP}
Exit code: 0 if nothing tightens, 3 if a change tightens, 1 if a policy is invalid, 2 for invalid arguments.
`;

export const REPLAY_HELP = `Usage: weir replay --policy <path> [options] <log>…

Decides the requests of a log again with a policy, and reports for each rule and caller which requests would be denied.
<log> is a file with JSON lines, which may be compressed with gzip, or - for standard input: weir's decision log, or any
log with a map. Several logs are merged by time. docs/operate/replay.md describes maps and the report.

  --policy <path>  policy file or directory
  --against <path> policy to compare with (default: compare with what the log says)
  --map <file>     file that says what the members of the lines are; without it, the log is a decision log
  --by <key>       report each value of this key of the descriptors, such as tenant
  --max-newly-denied <n|n%>
                   exit with 3 if more requests, or a larger share of them, would be newly denied
  --json <file>    also write the report as JSON, with all callers
${LOAD_OPTIONS_HELP}
A limit in the phase monitoring denies nothing, also in a replay. The report begins with the requests that exceed it.

Exit code: 0 if --max-newly-denied is kept, or not set, 3 if it is exceeded, 4 if the log does not support a verdict,
for example because more than 0.1% of its lines cannot be read, 1 if a policy, the map or a log cannot be read, the logs
have no requests, or Ctrl-C stopped the replay, 2 for invalid arguments. After Ctrl-C, weir reports what it has read.
`;

export const CHECK_HELP = `Usage: weir check [options] key=value … [+ key=value …]

Sends rate limit requests to a running server and prints the answers. The arguments are the entries of a descriptor; a
single + starts the next descriptor.

Without --address, the command uses the server's variables: GRPC_UDS, or GRPC_HOST and GRPC_PORT (default
${defaultOf('grpcHost')}:${defaultOf('grpcPort')}). If GRPC_SERVER_USE_TLS is set, the command uses TLS and accepts any certificate.

  --address <host:port>  gRPC address of another server, or unix:<path>
  --domain <name>        domain of the policy (default: the only domain of the server, or open-api if the command
                         cannot find the domains of the server)
  --count <n>            number of calls (default 1); with 10 or more calls, latency percentiles are shown
  --concurrency <n>      number of concurrent calls (default 1)
  --hits <n>             hits of each call (default 1); 0 reads the limits without taking tokens
  --timeout <duration>   timeout of a call, such as 500ms or 10s (default 5s)
  --tls                  use TLS, and trust the CAs that Node.js trusts
  --ca <file>            use TLS, and trust these CAs (PEM)
  --cert, --key <file>   use TLS with this client certificate (PEM)
  --policy <path>        policy file or directory of the server, to find the domain and to explain why no rule matched
  --debug <host:port>    debug port of the server, for the same purposes (default: DEBUG_HOST and DEBUG_PORT,
                         or port ${defaultOf('debugPort')} if the server is on port ${defaultOf('grpcPort')} of this machine)
  --json                 print a JSON object instead of a table
  --help                 show this help

Exit code: 0 if every call succeeded, even with OVER_LIMIT, 1 if a call failed, 2 for invalid arguments.

Example: weir check --count 200 --concurrency 20 tenant=acme resource_group=user-chats
`;

export const HEALTH_HELP = `Usage: weir health [--address <host:port>]

Checks the gRPC health of a running server.

Without --address, the command uses the server's variables: GRPC_UDS, or GRPC_HOST and GRPC_PORT (default
${defaultOf('grpcHost')}:${defaultOf('grpcPort')}). If GRPC_SERVER_USE_TLS is set, the command uses TLS and accepts any
certificate. If GRPC_CLIENT_TLS_CACERT is set and --cert is not, the command calls /healthcheck at HOST and PORT
instead.

  --address <host:port>  gRPC address of another server, or unix:<path>
  --tls                  use TLS, and trust the CAs that Node.js trusts
  --ca <file>            use TLS, and trust these CAs (PEM)
  --cert, --key <file>   use TLS with this client certificate (PEM)

Exit code: 0 if the server is SERVING, 1 if it is not or does not answer, 2 for invalid arguments.
`;

export const MIGRATE_HELP = `Usage: weir migrate [options] <file or directory>…

Reads an installation of envoyproxy/ratelimit and prints a report: decisions that you have to make before you switch to
weir, notes, and variables without effect. The command does not contact a server, and does not write any file.
docs/migrate.md describes the steps.

  <file>            a file of the installation. weir detects its type: a Docker Compose file, Kubernetes manifests,
                    variables (KEY=VALUE lines) or a policy file
  <directory>       the directory of the policy files, including its subdirectories; optional if the policies are in
                    ConfigMaps, or come from a management server
  --env <file>      file with the variables of the service, as KEY=VALUE lines (the syntax of an env_file)
  --service <name>  name of the rate limit service or container, if weir cannot detect it
  --json            print JSON

weir does not read the values of Secrets.

Exit code: 0 if no decision is needed, 1 if a decision is needed or a file cannot be read, 2 for invalid arguments
and for limits of other services, such as Limitador.
`;

/** `weir bucket --help`. */
export const BUCKET_HELP = `Usage: weir bucket show|reset|grant|release [<domain>] key=value… [options]
       weir bucket new-token <name> read|write

Shows or changes the buckets of one caller on a running server. The arguments key=value are the entries of a
descriptor, before or after derive. A subset of the entries selects every descriptor that contains them. <domain> is
optional if the server has only one domain. API keys are never shown.

  show       show all limits that the descriptor matches: tokens or hits remaining, debt, time until the next token
             and until the bucket is full, the 100 holds that expire first, and the Redis key. For a subset of the
             entries, show the limits that could match
  reset      refill the buckets, clear their debt, and end their reservations
  grant      add --tokens <n> to each limit, up to the capacity. In a chain (then), each limit gets these tokens; with
             --rule, only one limit
  release    end one hold (--hold) or all holds (--all): free the slots of a concurrency limit, and give back all
             reserved tokens or hits, regardless of "unknown" in the policy. The requests may still run, but weir
             no longer counts them and ignores what they use
  new-token  print a new token and its line for ADMIN_TOKENS_FILE, without contacting a server

  --domain <name>        domain, if it is not the first argument
  --entries <file>       read entries from a file, one key=value per line; - reads standard input. Use a file for API
                         keys, because all users of a machine can see command-line arguments
  --limit <n>/<unit>     show: the bucket of requests with this override, such as 100/minute
  --rule <path or name>  reset, grant, release: only the limits of this rule
  --tokens <n>           grant: number of tokens
  --hold <id>            release: ID of the hold, as show lists it
  --all                  release: all holds
  --dry-run              show what would change, without changing it
  --watch[=<duration>]   show: repeat at this interval (default 2s) until Ctrl-C
  --json                 print the JSON answer of the server; with --watch, one line per answer
${DEBUG_OPTIONS_HELP}
To block a customer, or to exempt a customer from limits, set blocked or unlimited in the table of plans.

Exit code: 0 if the command succeeded, 1 if it failed or no limit could match, 2 for invalid arguments.

Example: weir bucket grant tenant=acme --tokens 100
`;

export const TOP_HELP = `Usage: weir top [options]

Shows the callers with the most denied requests or used hits in the last minute or hour: rule, entries, denied requests,
used hits, and the used share of the limit. API keys are never shown.

The server tracks a limited number of buckets (TOP_BUCKETS), so the numbers are estimates. The second line shows the
maximum error.

  --all <addresses>      add up all replicas: the <host:port> of each debug port, separated by commas, or
                         dns:<name>:<port> for all addresses of a host name, such as the name of a headless Kubernetes
                         Service. IPv6 addresses are used only if the name has no IPv4 address
  --by denied|used       sort order (default denied)
  --of minute|hour       period (default minute)
  --domain <name>        only this domain
  --rule <path>          only this rule
  --limit <n>            maximum number of rows, up to 1000 (default 20)
  --watch                print the table every two seconds until Ctrl-C
  --json                 print the answer as JSON; with --all, print the sum and list the servers that did not
                         answer; with --watch, print one line per answer
${DEBUG_OPTIONS_HELP}
Exit code: 0 if every server answered, 1 if a server did not answer or does not know the domain or rule, 2 for invalid
arguments.

Example: weir top --all dns:weir-headless:6070 --of hour
`;
