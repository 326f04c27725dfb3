import { goBoolean } from '../../server/settings/settings-values.js';

/** A flag of a Go program: its name without dashes, and its help text. */
export interface GoFlag {
  readonly name: string;
  readonly help: string;
  /** Whether the flag is boolean: `-x` means true, and a value must be written as `-x=value`. */
  readonly boolean?: true;
}

export type GoFlags =
  | {
      readonly kind: 'run';
      /** Values of each flag, in the given order. A boolean is `true` or `false`. */
      readonly values: ReadonlyMap<string, readonly string[]>;
      /** Arguments after the flags. */
      readonly rest: readonly string[];
    }
  | { readonly kind: 'help' }
  | { readonly kind: 'usage'; readonly message: string };

/**
 * Parses arguments like Go's package `flag` (pkg.go.dev/flag, "Command line flag syntax"): one or two dashes, `-x
 * value` or `-x=value`, and booleans without a value. Flags end at `--` or at the first argument that is not a flag.
 */
export function readGoFlags(args: readonly string[], flags: readonly GoFlag[]): GoFlags {
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
      return usage(`${JSON.stringify(word)} is not a flag`);
    }
    const flag = flags.find((one) => one.name === name);
    if (flag === undefined) {
      if (name === 'help' || name === 'h') return { kind: 'help' };
      return usage(`unknown flag -${name}`);
    }
    let value = given;
    if (flag.boolean) {
      value = readBoolean(value ?? 'true');
      if (value === undefined) return usage(`-${name} must be true or false, not ${JSON.stringify(given)}`);
    } else if (value === undefined) {
      value = args[++i];
      if (value === undefined) return usage(`-${name} needs a value`);
    }
    const list = values.get(name);
    if (list === undefined) values.set(name, [value]);
    else list.push(value);
  }
  return { kind: 'run', values, rest: args.slice(i) };
}

function readBoolean(text: string): string | undefined {
  const value = goBoolean(text);
  return value === undefined ? undefined : String(value);
}

function usage(message: string): GoFlags {
  return { kind: 'usage', message };
}
