import { type ParseArgsConfig, parseArgs } from 'node:util';
import { nearest } from '../nearest-name.js';
import { printableLine } from '../printable.js';

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
    return `weir ${command}: ${argumentSentence(error as Error, Object.keys(options))}; see weir ${command} --help\n`;
  }
}

/** What is wrong with arguments that node:util refuses, whose options are `known`; Node's own sentences are longer. */
export function argumentSentence(error: Error, known: readonly string[]): string {
  return printableLine(sentenceOf(error, known));
}

function sentenceOf({ message }: Error, known: readonly string[]): string {
  // Node's own sentences go on about positional arguments; the first one says it all.
  const [sentence = ''] = message.split(/\. |\n/);
  const [, withoutValue, why] =
    /^Option '(?:-\w, )?(--[^\s']+)(?: <value>)?' argument (missing|is ambiguous)/.exec(sentence) ?? [];
  if (why === 'missing') return `${withoutValue} has no value; write one after it`;
  if (why !== undefined)
    return `${withoutValue} has no value; write one after it, or ${withoutValue}=… where it begins with -`;
  const unknown = /^Unknown option '(--?(.+))'$/s.exec(sentence);
  if (unknown === null) return sentence;
  const [, option, word = ''] = unknown;
  const meant = nearest(word, known);
  return `there is no option ${option}${meant === undefined ? '' : ` (did you mean --${meant}?)`}`;
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
    if (word === '+') {
      return (
        `weir ${command}: a + begins another descriptor, and weir ${command} takes one; ` +
        'call it once for each descriptor of the request\n'
      );
    }
    if (entry === undefined) {
      const order = 'write the path of the policy first, and then entries such as user=ann';
      return `weir ${command}: argument ${i + 2} is not of the form key=value; ${order}\n`;
    }
    entries.push(entry);
  }
  return entries;
}
