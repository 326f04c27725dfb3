import { type ParseArgsConfig, parseArgs } from 'node:util';
import { parseGoDuration } from '../config/yaml/go-duration.js';
import { nearest } from '../runtime/nearest-name.js';
import { printableLine } from '../runtime/printable.js';
import { removedOption } from '../runtime/removed-names.js';
import { CommandError, EXIT, usageError } from './io.js';

type Options = NonNullable<ParseArgsConfig['options']>;
interface Config<T extends Options> extends ParseArgsConfig {
  args: string[];
  options: T;
  allowPositionals: true;
  strict: true;
}
export type ParsedArguments<T extends Options> = ReturnType<typeof parseArgs<Config<T>>>;

/** Parses a command's arguments. Throws a {@link CommandError} if they are invalid. */
export function readArguments<T extends Options>(
  command: string,
  args: readonly string[],
  options: T,
): ParsedArguments<T> {
  try {
    return parseArgs<Config<T>>({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw usageError(command, printableLine(shortMessage(command, error as Error, Object.keys(options))));
  }
}

/** Describes an error of `parseArgs`, for a command whose options are `known`, more briefly than Node.js does. */
function shortMessage(command: string, { message }: Error, known: readonly string[]): string {
  // Node.js appends advice about positional arguments, so only the first sentence is kept.
  const [sentence = ''] = message.split(/\. |\n/);
  const [, withoutValue, why] =
    /^Option '(?:-\w, )?(--[^\s']+)(?: <value>)?' argument (missing|is ambiguous)/.exec(sentence) ?? [];
  if (why === 'missing') return `${withoutValue} needs a value; write the value after the option`;
  if (why !== undefined)
    return (
      `${withoutValue} needs a value; write the value after the option, or as ${withoutValue}=… if it ` +
      'begins with -'
    );
  const unknown = /^Unknown option '(--?(.+))'$/s.exec(sentence);
  if (unknown === null) return sentence;
  const [, option, word = ''] = unknown;
  const removed = removedOption(command, word);
  if (removed !== undefined) return `${option}: ${removed}`;
  const meant = nearest(word, known);
  return `unknown option ${option}${meant === undefined ? '' : ` (did you mean --${meant}?)`}`;
}

/** A descriptor entry, as given on the command line. */
export interface ArgumentEntry {
  readonly key: string;
  readonly value: string;
}

/**
 * Parses `key=value`, whose value may be empty and may contain `=`. Returns undefined if the word has no key or no `=`.
 */
export function readEntry(word: string): ArgumentEntry | undefined {
  const equals = word.indexOf('=');
  return equals < 1 ? undefined : { key: word.slice(0, equals), value: word.slice(equals + 1) };
}

/**
 * Parses `key=value` arguments, the first of which has the number `place`, after `what`. The error gives the position
 * of an invalid argument and not its text, because the text may be a mistyped secret.
 */
export function readEntries(
  command: string,
  what: string,
  words: readonly string[],
  place: number,
): readonly ArgumentEntry[] {
  return words.map((word, i) => {
    if (word === '+')
      throw usageError(
        command,
        `"+" begins another descriptor, but weir ${command} accepts only one; run the command once for each descriptor`,
      );
    const entry = readEntry(word);
    if (entry !== undefined) return entry;
    const order = `write ${what} first, and then entries such as user=ann`;
    throw new CommandError(EXIT.USAGE, `argument ${place + i} is not of the form key=value; ${order}`);
  });
}

/**
 * Converts the value of an option, a duration in Go's syntax, to milliseconds. `longest` is the maximum, in the same
 * syntax. Throws a {@link CommandError}.
 */
export function goMilliseconds(command: string, option: string, text: string, longest: string): number {
  const [nanos, max] = [text, longest].map(parseGoDuration);
  const milliseconds = nanos === undefined ? Number.NaN : Number(nanos) / 1e6;
  if (milliseconds >= 1 && milliseconds <= Number(max) / 1e6) return Math.round(milliseconds);
  const sentence = `${option} "${text}" is not a duration from 1ms to ${longest}, such as 500ms or 2s`;
  throw usageError(command, printableLine(sentence));
}
