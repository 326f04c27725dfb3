import { BUCKET_ACTIONS, type BucketAction, type BucketQuestion } from '../../admin/buckets/messages.js';
import { readStandardInput } from '../../runtime/regular-file.js';
import { MAX_NAMED_FILE_BYTES, readNamedFile } from '../../server/followed-files.js';
import {
  type ArgumentEntry,
  goMilliseconds,
  type ParsedArguments,
  readArguments,
  readEntries,
  readEntry,
} from '../arguments.js';
import { DEBUG_OPTIONS, type DebugTarget } from '../call/debug-options.js';
import { CommandError, EXIT } from '../io.js';

export interface BucketOptions {
  readonly question: BucketQuestion;
  readonly json: boolean;
  /** Interval of `--watch` in milliseconds; undefined sends one request. */
  readonly watchMs: number | undefined;
  /** Debug port to call, and how to call it. */
  readonly target: DebugTarget;
}

const OPTIONS = {
  ...DEBUG_OPTIONS,
  domain: { type: 'string' },
  entries: { type: 'string' },
  limit: { type: 'string' },
  rule: { type: 'string' },
  tokens: { type: 'string' },
  hold: { type: 'string' },
  all: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  json: { type: 'boolean' },
  watch: { type: 'string' },
} as const;

type Option = keyof typeof OPTIONS;

/** Options of each action, in addition to those that all actions accept. */
const ACTION_OPTIONS: Readonly<Record<BucketAction, readonly Option[]>> = {
  show: ['limit', 'watch'],
  reset: ['rule', 'dry-run'],
  grant: ['tokens', 'rule', 'dry-run'],
  release: ['hold', 'all', 'rule', 'dry-run'],
};
const COMMON_OPTIONS: readonly string[] = [...Object.keys(DEBUG_OPTIONS), 'domain', 'entries', 'json'];

const DEFAULT_WATCH = '2s';
const MAX_WATCH = '1h';
/** Ends the message of an invalid command line. */
export const SEE_HELP = '; see weir bucket --help';

export function isBucketAction(text: string): text is BucketAction {
  return (BUCKET_ACTIONS as readonly string[]).includes(text);
}

/** The parsed arguments after the action. */
export type BucketArguments = ParsedArguments<typeof OPTIONS>;

/** Parses the arguments after the action. */
export function readBucketArguments(args: readonly string[]): BucketArguments {
  return readArguments('bucket', withDefaultWatch(args), OPTIONS);
}

/** Adds the default interval to a `--watch` without a value, which `parseArgs` would reject. */
function withDefaultWatch(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--');
  const isOption = (at: number): boolean => end === -1 || at < end;
  return args.map((arg, at) => (arg === '--watch' && isOption(at) ? `--watch=${DEFAULT_WATCH}` : arg));
}

type Values = BucketArguments['values'];

function invalid(sentence: string): CommandError {
  return new CommandError(EXIT.USAGE, sentence);
}

/** Checks the arguments of an action. No message contains the value of an entry, because it may be a secret. */
export function readBucketOptions(
  action: BucketAction,
  { values, positionals: words }: BucketArguments,
): BucketOptions {
  const unsupported = Object.keys(values).find(
    (name) => !COMMON_OPTIONS.includes(name) && !ACTION_OPTIONS[action].includes(name as Option),
  );
  if (unsupported !== undefined) throw invalid(unsupportedOptionMessage(action, unsupported));
  const { domain, entries: named } = readWords(values.domain, words);
  const entries = [...(values.entries === undefined ? [] : entriesOfFile(values.entries)), ...named];
  const wrong = combinationError(action, values, entries.length);
  if (wrong !== undefined) throw invalid(wrong + SEE_HELP);
  const watchMs =
    values.watch === undefined ? undefined : goMilliseconds('bucket', '--watch', values.watch, MAX_WATCH);
  const { limit, rule, hold, all } = values;
  const question: BucketQuestion = {
    action,
    ...(domain !== undefined && { domain }),
    entries,
    ...(limit !== undefined && { limit }),
    ...(rule !== undefined && { rule }),
    ...(values.tokens !== undefined && { tokens: Number(values.tokens) }),
    ...(hold !== undefined && { hold }),
    ...(all === true && { all }),
    ...(values['dry-run'] === true && { dry_run: true }),
  };
  const { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout } = values;
  return {
    question,
    json: values.json === true,
    watchMs,
    target: { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout },
  };
}

function unsupportedOptionMessage(action: BucketAction, name: string): string {
  const takers = BUCKET_ACTIONS.filter((one) => ACTION_OPTIONS[one].includes(name as Option));
  return `--${name} has no effect on ${action}; use it with weir bucket ${takers.join(', ')}${SEE_HELP}`;
}

function readWords(
  option: string | undefined,
  words: readonly string[],
): Pick<BucketQuestion, 'domain' | 'entries'> {
  const [first, ...others] = words;
  const isDomain = first !== undefined && !first.includes('=') && first !== '+';
  if (isDomain && option !== undefined)
    throw invalid(
      `the domain is specified twice, as an argument and with --domain; remove one of them${SEE_HELP}`,
    );
  const entries = readEntries('bucket', 'the domain', isDomain ? others : words, isDomain ? 2 : 1);
  const domain = isDomain ? first : option;
  return { ...(domain !== undefined && { domain }), entries };
}

/** Reads a file with one entry on each line. Its error quotes no line. */
function entriesOfFile(path: string): readonly ArgumentEntry[] {
  let text: string;
  try {
    text = entriesText(path);
  } catch (error) {
    throw invalid((error as Error).message);
  }
  const entries: ArgumentEntry[] = [];
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line === '') continue;
    const entry = readEntry(line);
    if (entry === undefined) throw invalid(`line ${at + 1} in --entries is not of the form key=value`);
    entries.push(entry);
  }
  return entries;
}

/** Throws an Error with a message for the user. */
function entriesText(path: string): string {
  if (path !== '-') return readNamedFile('--entries', path).toString();
  try {
    return readStandardInput(MAX_NAMED_FILE_BYTES).toString();
  } catch (error) {
    throw new Error(`--entries: standard input ${(error as Error).message}`);
  }
}

/** Returns an error message if an action lacks an option or has options that exclude each other, else undefined. */
function combinationError(action: BucketAction, values: Values, entries: number): string | undefined {
  if (entries === 0) return 'specify at least one entry as key=value';
  switch (action) {
    case 'grant':
      if (values.tokens === undefined) return 'specify the number of tokens with --tokens <n>';
      return isWholeNumber(values.tokens) ? undefined : '--tokens must be a whole number of 1 or more';
    case 'release':
      return (values.hold === undefined) === (values.all === undefined)
        ? 'specify the hold with --hold <id>, as weir bucket show lists it, or all holds with --all'
        : undefined;
    default:
      return undefined;
  }
}

function isWholeNumber(text: string): boolean {
  return /^\d+$/.test(text) && Number(text) >= 1 && Number.isSafeInteger(Number(text));
}
