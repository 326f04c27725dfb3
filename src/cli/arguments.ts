import { type ParseArgsConfig, parseArgs } from 'node:util';
import { nearest } from '../nearest-name.js';

type Options = NonNullable<ParseArgsConfig['options']>;
interface Config<T extends Options> extends ParseArgsConfig {
  args: string[];
  options: T;
  allowPositionals: true;
  strict: true;
}
export type ParsedArguments<T extends Options> = ReturnType<typeof parseArgs<Config<T>>>;

/** Parses a command's arguments; a sentence instead where they make no sense. */
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
    // Node's own sentences go on about positional arguments; the first one says it all.
    const [sentence = ''] = (error as Error).message.split('. ');
    const unknown = /^Unknown option '--(.+)'$/.exec(sentence)?.[1];
    const meant = unknown === undefined ? undefined : nearest(unknown, Object.keys(options));
    const hint = meant === undefined ? '' : ` (did you mean --${meant}?)`;
    return `weir ${command}: ${sentence}${hint}; see weir ${command} --help\n`;
  }
}

/** A descriptor entry as the command line writes it. */
export interface ArgumentEntry {
  readonly key: string;
  readonly value: string;
}

/** `key=value` as an entry; undefined where it is none. The value may be empty and may hold further `=`. */
export function readEntry(word: string): ArgumentEntry | undefined {
  const equals = word.indexOf('=');
  return equals < 1 ? undefined : { key: word.slice(0, equals), value: word.slice(equals + 1) };
}

/**
 * `key=value` arguments, which follow a first one, as descriptor entries; a sentence where one is none. The sentence
 * names the place of a word, as its text may be a mistyped secret.
 */
export function readEntries(command: string, words: readonly string[]): readonly ArgumentEntry[] | string {
  const entries: ArgumentEntry[] = [];
  for (const [i, word] of words.entries()) {
    const entry = readEntry(word);
    if (entry === undefined) return `weir ${command}: argument ${i + 2} is not of the form key=value\n`;
    entries.push(entry);
  }
  return entries;
}
