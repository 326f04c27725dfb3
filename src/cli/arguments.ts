import { type ParseArgsConfig, parseArgs } from 'node:util';
import { parseGoDuration } from '../config/yaml/go-duration.js';
import { nearest } from '../nearest-name.js';
import { printableLine } from '../printable.js';
import { removedOption } from '../runtime/removed-names.js';

type Options = NonNullable<ParseArgsConfig['options']>;
interface Config<T extends Options> extends ParseArgsConfig {
  args: string[];
  options: T;
  allowPositionals: true;
  strict: true;
}
export type ParsedArguments<T extends Options> = ReturnType<typeof parseArgs<Config<T>>>;

/** Parses a command's arguments. Returns an error message if they are invalid. */
export function readArguments<T extends Options>(
  command: string,
  args: readonly string[],
  options: T,
): ParsedArguments<T> | string {
  try {
    return parseArgs<Config<T>>({
      args: [...args],
      options,
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    const message = argumentError(command, error as Error, Object.keys(options));
    return `weir ${command}: ${message}; see weir ${command} --help\n`;
  }
}

/** Describes an error of `parseArgs`, for a command whose options are `known`, more briefly than Node.js does. */
export function argumentError(command: string, error: Error, known: readonly string[]): string {
  return printableLine(shortMessage(command, error, known));
}

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
 * Parses the `key=value` arguments that follow a first argument. Returns an error message if one is invalid. The
 * message gives the position of the argument and not its text, because the text may be a mistyped secret.
 */
export function readEntries(command: string, words: readonly string[]): readonly ArgumentEntry[] | string {
  const entries: ArgumentEntry[] = [];
  for (const [i, word] of words.entries()) {
    const entry = readEntry(word);
    if (word === '+') {
      return (
        `weir ${command}: "+" begins another descriptor, but weir ${command} accepts only one; run the ` +
        'command once for each descriptor\n'
      );
    }
    if (entry === undefined) {
      const order = 'write the policy path first, and then entries such as user=ann';
      return `weir ${command}: argument ${i + 2} is not of the form key=value; ${order}\n`;
    }
    entries.push(entry);
  }
  return entries;
}

/**
 * Converts the value of an option, a duration in Go's syntax, to milliseconds. Returns an error message if the value is
 * invalid or not between 1 and `maxMs` milliseconds.
 */
export function goMilliseconds(option: string, text: string, maxMs: number): number | string {
  const nanos = parseGoDuration(text);
  const milliseconds = nanos === undefined ? Number.NaN : Number(nanos) / 1e6;
  if (milliseconds >= 1 && milliseconds <= maxMs) return Math.round(milliseconds);
  return printableLine(
    `${option} "${text}" is not a duration from 1ms to ${maxMs / 1000}s, such as 500ms or 2s`,
  );
}
