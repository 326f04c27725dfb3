import { inertByReason, REMOVED_SETTINGS } from '../server/settings/inert-settings.js';
import { defaultOf, SETTINGS } from '../server/settings/settings-table.js';
import { LOAD_OPTIONS_HELP } from './load-options.js';

/** One command of `weir`, as `weir --help` lists it. */
export interface CommandHelp {
  readonly usage: string;
  readonly summary: string;
}

const COMMANDS: readonly CommandHelp[] = [
  {
    usage: 'init [<folder>]',
    summary: 'write a policy, an Envoy configuration and a compose file to begin with',
  },
  { usage: 'serve [--<setting> <value>]', summary: 'answer Envoy over gRPC' },
  { usage: 'check-config <path>…', summary: 'check policy files; every error at once' },
  {
    usage: 'explain <path> --domain <domain> key=value…',
    summary: 'say which rule and bucket a descriptor meets',
  },
  { usage: 'diff <old> <new>', summary: 'say what a change of policies changes, and whether it tightens' },
  {
    usage: 'check [--address <host:port>] key=value…',
    summary: 'ask a running server and show what it answers',
  },
  {
    usage: 'health [--address <host:port>]',
    summary: 'ask a running server for its health, for container probes',
  },
  {
    usage: 'bucket show|grant|block|… key=value…',
    summary: 'show who is limited and why, and help one caller now',
  },
  { usage: 'top [--all <addresses>]', summary: 'show who is denied most, and who uses most' },
];

/** Commands for those who come from envoyproxy/ratelimit. */
const REFERENCE_COMMANDS: readonly CommandHelp[] = [
  {
    usage: 'migrate <file or directory>… [--write <folder>]',
    summary: 'say what a move changes, and write what to deploy',
  },
  { usage: 'ratelimit', summary: 'its service, which reads variables and no flags' },
  {
    usage: 'ratelimit-client -domain <domain> -descriptors key=value,…',
    summary: 'its client, with its flags',
  },
  { usage: 'ratelimit-config-check -config_dir <directory>', summary: 'its check of policy files' },
];

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('');
}

/** `weir --help`. */
export function mainHelp(): string {
  return `weir: a rate limit decision service for Envoy

Usage: weir <command> [options]

${columns(COMMANDS.map(({ usage, summary }) => [usage, summary]))}
Coming from envoyproxy/ratelimit:

${columns(REFERENCE_COMMANDS.map(({ usage, summary }) => [usage, summary]))}
  weir <command> --help  more on one command
  weir --version         the version

Exit codes:
  0         done
  1         the answer is no: a bad policy, a taken port, a server that does not answer, a variable with a bad value
  2         the command line makes no sense: an unknown command or option, or a bad value of a flag
  3         weir diff: something tightens
  143, 130  ended by SIGTERM or SIGINT; weir serve by a second one
`;
}

/** Wraps a paragraph, for the settings list. */
function wrap(paragraph: string, width: number, indent: string): string {
  let line = '';
  const lines: string[] = [];
  for (const word of paragraph.split(' ')) {
    if (line.length + word.length + 1 > width && line !== '') {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  lines.push(line);
  return lines.map((one) => `${indent}${one}\n`).join('');
}

/** Variables of the reference that change nothing here, together with those that change nothing for the same reason. */
function inertHelp(): string {
  return [...inertByReason()].map(([reason, names]) => inertText(names.join(', '), reason)).join('');
}

function removedHelp(): string {
  return [...REMOVED_SETTINGS].map(([name, reason]) => inertText(name, reason)).join('');
}

function inertText(names: string, reason: string): string {
  return `${wrap(names, 94, '  ')}${wrap(reason, 90, '      ')}`;
}

/** `weir serve --help`: every setting with its flag, variable and default. */
export function serveHelp(): string {
  const settings = SETTINGS.map(({ name, flag, type, default: value, help }) => {
    const shown = value === '' ? 'unset' : value;
    return `  ${flag} <${type.replaceAll('_', ' ')}>  ${name}, default ${shown}\n${wrap(help, 90, '      ')}`;
  });
  return `Usage: weir serve [--<setting> <value>]

Answers envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit over gRPC until SIGTERM or SIGINT; a second signal
ends at once. SIGHUP reloads the policy. Settings are environment variables; a flag of the same name beats the
variable.

Exit code: 0 after a drain; 1 when weir cannot start or go on, also for a variable with a bad value; 2 for a flag that
is unknown or has a bad value.

${settings.join('')}
Variables of envoyproxy/ratelimit that are taken and change nothing:

${inertHelp()}
Variables of earlier versions of weir that are taken and change nothing:

${removedHelp()}`;
}

export const INIT_HELP = `Usage: weir init [<folder>]

Writes a commented policy, an Envoy configuration with a placeholder for your service, and a docker compose file that
runs weir, Envoy and Redis with them as they are, and says what to do next. Where one of the files is there already,
nothing is written.

  <folder>  where to; the current one by default, and made where it is not there

Exit code: 0 when the files are written, 1 when they are not, 2 for wrong arguments.
`;

export const CHECK_CONFIG_HELP = `Usage: weir check-config [options] <path>…

Checks policy files, directories of them, and manifests with ConfigMaps that hold them, and prints every error with
file, line, column and the place in the document. A directory without policy files is an error. Nothing else happens.

${LOAD_OPTIONS_HELP}
Exit code: 0 when all are good (warnings allowed), 1 when any is bad, 2 for wrong arguments.
`;

export const EXPLAIN_HELP = `Usage: weir explain <path> --domain <domain> key=value…

Says what a descriptor meets in a policy: what \`derive\` made of it, which node matched and why, which rule holds,
its phase, its name in the statistics, its headers and what denied callers get, and the bucket's key in Redis with its
slot, if that is a Redis Cluster. Where no rule matches it says what would have to be different. Values of API keys are
never shown.

It takes one descriptor, whose entries are the arguments key=value in their order. Of a request with several
descriptors, call it for each; weir check takes several, with a + between them.

  --domain <domain>
                   required when the policy holds more than one
  --redis          ask Redis which of its nodes serves the bucket. Where Redis is, and how to log in, say the variables
                   of the server (REDIS_URL, REDIS_TYPE, REDIS_PERSECOND and others), which weir explain must see as
                   well; keys begin with CACHE_KEY_PREFIX then. Of Sentinels it is the master that they announce; a
                   single Redis, or a proxy that shards, is named without asking. No bucket is touched
  --json           the same for machines; docs/reference/explain-json.md tells of each field
${LOAD_OPTIONS_HELP}
Exit code: 0 when a rule applies, 1 when none does, the policy is bad, or Redis does not say what --redis asks,
2 for wrong arguments.
`;

export const DIFF_HELP = `Usage: weir diff [--json] <old> <new>

Compares two policies, each a file or a directory, and prints a sentence for every descriptor whose limits appear,
vanish, tighten or loosen, and for whatever else answers differently: phases, order of matching, derive, candidates.
Nothing else happens.

A change tightens if some request that passed before could now be denied; a schedule of phases counts from now on.
Values of API keys are never shown.

  --json           the same for machines
${LOAD_OPTIONS_HELP}
Exit code: 0 when nothing tightens, 3 when something does, 1 when a policy is bad, 2 for wrong arguments.
`;

export const CHECK_HELP = `Usage: weir check [options] key=value … [+ key=value …]

Asks a running server and prints how it decided. The entries make one descriptor; a lone + starts the next.

Without --address it asks the server of its own environment, as weir health does: GRPC_UDS, or GRPC_HOST and GRPC_PORT
(${defaultOf('grpcHost')}:${defaultOf('grpcPort')} when unset), on loopback if they name every address; over TLS if
GRPC_SERVER_USE_TLS says so, whatever certificate it shows.

  --address <host:port>  gRPC address of another server, or unix:<path>
  --domain <name>        domain of the policy (default open-api)
  --count <n>            calls to make (default 1); percentiles of their latency are shown from 10 on
  --concurrency <n>      calls at once (default 1)
  --hits <n>             hits of each call (default 1)
  --timeout <duration>   longest wait for one answer, such as 500ms or 2s (default 1s)
  --tls                  speak TLS, and trust the issuers Node.js ships
  --ca <file>            speak TLS, and trust these issuers (PEM)
  --cert, --key <file>   speak TLS, and show this client certificate (PEM)
  --policy <path>        policy file or directory that tells why no rule matched
  --debug <host:port>    debug port of the server, which tells it, too (default: that of the environment, or port
                         ${defaultOf('debugPort')} beside port ${defaultOf('grpcPort')} of this machine)
  --json                 print one JSON object instead of the table
  --help                 print this text

Exit code: 0 when every call was answered, OVER_LIMIT included; 1 when a call failed; 2 for wrong arguments.

Example: weir check --count 200 --concurrency 20 tenant=acme resource_group=user-chats
`;

export const HEALTH_HELP = `Usage: weir health [--address <host:port>]

Asks a running server for its gRPC health and exits 0 when it is SERVING. Without --address it asks the server of its
own environment: GRPC_UDS, or GRPC_HOST and GRPC_PORT, on loopback if they name every address; over TLS if
GRPC_SERVER_USE_TLS says so, whatever certificate it shows. Where GRPC_CLIENT_TLS_CACERT asks for a certificate and
--cert names none, /healthcheck of HOST and PORT is asked, which says the same.

  --address <host:port>  another server, or unix:<path>
  --tls                  speak TLS, and trust the issuers Node.js ships
  --ca <file>            speak TLS, and trust these issuers (PEM)
  --cert, --key <file>   speak TLS, and show this client certificate (PEM)

Exit code: 0 when it is SERVING, 1 when it is not or does not answer, 2 for wrong arguments.
`;

export const MIGRATE_HELP = `Usage: weir migrate [options] <file or directory>…

Reads an installation of envoyproxy/ratelimit and prints what needs a decision before the switch, what is good to
know, what will behave the same, what better, and what is set and changes nothing. With --write it also writes what to
deploy. Starts nothing, asks nobody, and changes no file that is there.

  <file>            describes the installation; several may be named, and each is known by what it holds: a docker
                    compose file, manifests of Kubernetes (Deployment, ConfigMap and others), values of a Helm chart,
                    a configuration of Envoy Gateway, variables as lines of KEY=VALUE, or a policy. Limits of Limitador
                    and RateLimits of Emissary are converted into policies, which --write writes
                    Compose files are put together in the order of the names, with the override file beside them
  <directory>       what RUNTIME_ROOT names, or the directory with the policy files; may be left out where a file says
                    where they are, or where a management server has them
  --env <file>      a file with the variables of the service, in any of these forms
  --service <name>  which service or container is the rate limit service, where images and commands do not tell
  --write <folder>  write the files with image and variables changed, the policies, and a README.md with the next
                    commands. Compose files that say it in several places, and what kubectl get printed, stay as they
                    are: an override file or a patch is written instead. Variables that are unset and have another
                    default in weir are added, so that they mean what they meant. Where one of the files is there
                    already, nothing is written
  --force           write over files that are there, but never over one that was read
  --image <name>    the image to write; weir:<version> by default
  --json            the same for machines

Values of Secrets are not looked at; references to them stay as they are.

Exit code: 0 when nothing needs a decision, 1 when something does or cannot be read or written, 2 for wrong arguments.
`;
