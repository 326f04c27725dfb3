import { listSome } from '../../runtime/texts.js';
import type { Io } from '../io.js';

/** Maximum number of arguments that the log names, and of characters that it shows of each. */
const SHOWN_ARGUMENTS = 10;
const SHOWN_CHARACTERS = 60;

/**
 * Runs `weir ratelimit`, which replaces the service of envoyproxy/ratelimit. Arguments are ignored, as in the original.
 * The log lists them, because the user may expect an effect.
 */
export async function runRatelimit(args: readonly string[], io: Io): Promise<number> {
  const { runServe } = await import('../serve.js');
  return runServe([], io, ignoredArguments(args));
}

/**
 * Returns the log line about ignored arguments, or no line without arguments. Values are omitted, because one may be a
 * password.
 */
export function ignoredArguments(args: readonly string[]): readonly string[] {
  if (args.length === 0) return [];
  const names = args.map((word, i) => nameOf(word) ?? `argument ${i + 1}`);
  return [
    'weir ratelimit ignores its arguments, as envoyproxy/ratelimit does: ' +
      `${listSome(names, SHOWN_ARGUMENTS)}; set environment variables instead, or ` +
      'run weir serve, which accepts flags',
  ];
}

/** Returns the name of a flag without its value; undefined if the argument is not a flag. */
function nameOf(word: string): string | undefined {
  const [flag] = /^--?[A-Za-z][\w.-]*/.exec(word) ?? [];
  return flag?.slice(0, SHOWN_CHARACTERS);
}
