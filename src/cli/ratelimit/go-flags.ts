import { goBoolean } from '../../server/settings/settings-values.js';
import { CommandError, EXIT } from '../io.js';

/** A flag of a Go program: its name without dashes, and its help text. */
export interface GoFlag {
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
