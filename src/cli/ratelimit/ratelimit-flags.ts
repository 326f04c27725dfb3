import { goBoolean } from '../../server/settings/settings-values.js';
import { CommandError, EXIT } from '../io.js';

/** A flag of a Go program: its name without dashes, and its help text. */
interface GoFlag {
  readonly name: string;
  readonly help: string;
  /** Whether the flag is boolean: `-x` means true, and a value must be written as `-x=value`. */
  readonly boolean?: true;
}

/** Flags of a command line. */
export interface GoFlags {
  /** Values of each flag, in the given order. A boolean is `true` or `false`. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** Arguments after the flags. */
  readonly rest: readonly string[];
}

/**
 * Parses arguments like Go's package `flag` (pkg.go.dev/flag, "Command line flag syntax"): one or two dashes, `-x
 * value` or `-x=value`, and booleans without a value. Flags end at `--` or at the first argument that is not a flag.
 * Returns undefined if the user asks for help. Throws a {@link CommandError} for invalid arguments.
 */
export function readGoFlags(
  command: string,
  args: readonly string[],
  flags: readonly GoFlag[],
): GoFlags | undefined {
  const usage = (sentence: string): CommandError => goUsageError(command, sentence);
  const values = new Map<string, string[]>();
  let i = 0;
  for (; i < args.length; i++) {
    const word = args[i] as string;
    if (word === '--') {
      i++;
      break;
    }
    const [, name, given] = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === undefined) {
      if (word === '-' || !word.startsWith('-')) break;
      throw usage(`${JSON.stringify(word)} is not a flag`);
    }
    const flag = flags.find((one) => one.name === name);
    if (flag === undefined) {
      if (name === 'help' || name === 'h') return undefined;
      throw usage(`unknown flag -${name}`);
    }
    let value = given;
    if (flag.boolean) {
      value = readBoolean(value ?? 'true');
      if (value === undefined) throw usage(`-${name} must be true or false, not ${JSON.stringify(given)}`);
    } else if (value === undefined) {
      value = args[++i];
      if (value === undefined) throw usage(`-${name} needs a value`);
    }
    const list = values.get(name);
    if (list === undefined) values.set(name, [value]);
    else list.push(value);
  }
  return { values, rest: args.slice(i) };
}

function readBoolean(text: string): string | undefined {
  const value = goBoolean(text);
  return value === undefined ? undefined : String(value);
}

/** Returns the error of an invalid command line. Go's flags have one dash. */
export function goUsageError(command: string, sentence: string): CommandError {
  return new CommandError(EXIT.USAGE, `${sentence}; see weir ${command} -help`);
}

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
