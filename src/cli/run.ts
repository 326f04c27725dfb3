import { version } from '../runtime/assets.js';
import { nearest } from '../runtime/nearest-name.js';
import { printableLines } from '../runtime/printable.js';
import { REMOVED_COMMANDS } from '../runtime/removed-names.js';
import { showsColours } from '../runtime/texts.js';
import {
  BUCKET_HELP,
  CHECK_CONFIG_HELP,
  CHECK_HELP,
  DIFF_HELP,
  EXPLAIN_HELP,
  HEALTH_HELP,
  INIT_HELP,
  MIGRATE_HELP,
  mainHelp,
  REPLAY_HELP,
  serveHelp,
  TOP_HELP,
} from './help.js';
import { EXIT, type Io, reportErrors } from './io.js';
import {
  RATELIMIT_CLIENT_HELP,
  RATELIMIT_CONFIG_CHECK_HELP,
  RATELIMIT_HELP,
} from './ratelimit/ratelimit-flags.js';

interface Command {
  /**
   * Runs the command. Its modules are imported only now, so that `weir --help` does not wait for gRPC. `raw` writes
   * without escaping control characters, for a command that prints colors and escapes foreign text itself.
   */
  readonly run: (args: readonly string[], io: Io, raw: Pick<Io, 'out'>) => Promise<number>;
  readonly help: () => string;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  init: {
    run: async (args, io) => (await import('./init.js')).runInit(args, io),
    help: () => INIT_HELP,
  },
  serve: { run: async (args, io) => (await import('./serve.js')).runServe(args, io), help: serveHelp },
  'check-config': {
    run: async (args, io) => (await import('./check-config.js')).runCheckConfig(args, io),
    help: () => CHECK_CONFIG_HELP,
  },
  explain: {
    run: async (args, io) => (await import('./explain.js')).runExplain(args, io),
    help: () => EXPLAIN_HELP,
  },
  diff: {
    run: async (args, io) => (await import('./diff.js')).runDiff(args, io),
    help: () => DIFF_HELP,
  },
  replay: {
    run: async (args, io) => (await import('./replay.js')).runReplay(args, io),
    help: () => REPLAY_HELP,
  },
  check: {
    run: async (args, io, raw) =>
      (await import('./check.js')).checkCommand(args, {
        ...io,
        out: raw.out,
        colour: showsColours(io.terminal, io.environment),
      }),
    help: () => CHECK_HELP,
  },
  health: {
    run: async (args, io) => (await import('./health.js')).runHealth(args, io),
    help: () => HEALTH_HELP,
  },
  bucket: {
    run: async (args, io) => (await import('./bucket/bucket.js')).runBucket(args, io),
    help: () => BUCKET_HELP,
  },
  top: {
    run: async (args, io) => (await import('./top/top.js')).runTop(args, io),
    help: () => TOP_HELP,
  },
  migrate: {
    run: async (args, io) => (await import('./migrate/migrate.js')).runMigrate(args, io),
    help: () => MIGRATE_HELP,
  },
  ratelimit: {
    run: async (args, io) => (await import('./ratelimit/ratelimit-service.js')).runRatelimit(args, io),
    help: () => RATELIMIT_HELP,
  },
  'ratelimit-client': {
    run: async (args, io) => (await import('./ratelimit/ratelimit-client.js')).runRatelimitClient(args, io),
    help: () => RATELIMIT_CLIENT_HELP,
  },
  'ratelimit-config-check': {
    run: async (args, io) =>
      (await import('./ratelimit/ratelimit-config-check.js')).runRatelimitConfigCheck(args, io),
    help: () => RATELIMIT_CONFIG_CHECK_HELP,
  },
};

/** Names that other programs use for the same commands. */
const COMMAND_SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['start', 'serve'],
  ['run', 'serve'],
  ['validate', 'check-config'],
  ['lint', 'check-config'],
  ['status', 'health'],
]);

function didYouMean(name: string): string {
  const meant = COMMAND_SYNONYMS.get(name) ?? nearest(name, Object.keys(COMMANDS));
  return meant === undefined ? '' : ` (did you mean ${meant}?)`;
}

/** The texts of `weir <command> --help`, in the order of `weir --help`. */
export function commandHelps(): ReadonlyMap<string, string> {
  return new Map(Object.entries(COMMANDS).map(([name, { help }]) => [name, help()]));
}

/**
 * Runs `weir` with the arguments after its name and resolves with the exit code. Control characters in the output are
 * escaped, so that strings from servers, files and arguments cannot control the terminal.
 */
export async function run(args: readonly string[], process: Io): Promise<number> {
  const io: Io = {
    ...process,
    out: (text) => process.out(printableLines(text)),
    err: (text) => process.err(printableLines(text)),
  };
  const [name, ...rest] = args;
  if (name === '--version' || name === '-v' || name === 'version') {
    io.out(`weir ${version()}\n`);
    return EXIT.OK;
  }
  if (name === '--help' || name === '-h' || name === 'help') {
    const topic = rest[0] === undefined ? undefined : COMMANDS[rest[0]];
    io.out(topic === undefined ? mainHelp() : topic.help());
    return EXIT.OK;
  }
  const removed = REMOVED_COMMANDS.get(name ?? '') ?? REMOVED_COMMANDS.get(`${name} ${rest[0]}`);
  if (removed !== undefined) {
    io.err(`weir: ${removed}\n`);
    return EXIT.USAGE;
  }
  const command = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    io.err(
      name === undefined
        ? mainHelp()
        : `weir: unknown command ${JSON.stringify(name)}${didYouMean(name)}; see weir --help\n`,
    );
    return EXIT.USAGE;
  }
  const end = rest.indexOf('--');
  const options = end === -1 ? rest : rest.slice(0, end);
  if (options.includes('--help') || options.includes('-h')) {
    io.out(command.help());
    return EXIT.OK;
  }
  return reportErrors(`weir ${name}`, io, () => command.run(rest, io, process));
}
