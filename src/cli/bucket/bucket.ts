import { newAdminToken, tokenNameFault } from '../../admin/admin-tokens.js';
import {
  BUCKET_ACTIONS,
  type BucketAction,
  type BucketAnswer,
  type BucketLevel,
  changesSomething,
  type ShownBucket,
  type ShownHolds,
} from '../../admin/buckets/messages.js';
import { nearest } from '../../runtime/nearest-name.js';
import { printable, printableJson, shellText } from '../../runtime/printable.js';
import { REMOVED_COMMANDS } from '../../runtime/removed-names.js';
import { secondsText } from '../../runtime/texts.js';
import { type ParsedArguments, readArguments } from '../arguments.js';
import { callDebugPort, type DebugResult } from '../call/debug-call.js';
import { type DebugServer, debugName, readDebugCall } from '../call/debug-server.js';
import { CommandError, EXIT, type Io, reportErrors, usageError } from '../io.js';
import { type Column, entriesText, tableLines, wrapped } from '../table.js';
import { timeOfDay, watch } from '../watch.js';
import {
  type BucketArguments,
  isBucketAction,
  readBucketArguments,
  readBucketOptions,
  SEE_HELP,
} from './bucket-options.js';

/** Action that calls no server. */
const NEW_TOKEN = 'new-token';
const NEW_TOKEN_OPTIONS = { json: { type: 'boolean' } } as const;
const ACTIONS: readonly string[] = [...BUCKET_ACTIONS, NEW_TOKEN];

/** Runs `weir bucket`. Resolves with exit code 0 if the action succeeded and, for `show`, if a limit could apply. */
export async function runBucket(args: readonly string[], io: Io): Promise<number> {
  const [action = '', ...rest] = args;
  if (action === NEW_TOKEN) {
    const parsed = readArguments('bucket', rest, NEW_TOKEN_OPTIONS);
    return reportErrors(`weir bucket ${action}`, io, async () => printNewToken(parsed, io));
  }
  if (!isBucketAction(action)) throw new CommandError(EXIT.USAGE, unknownActionMessage(action));
  const parsed = readBucketArguments(rest);
  return reportErrors(`weir bucket ${action}`, io, () => runAction(action, parsed, io));
}

async function runAction(action: BucketAction, parsed: BucketArguments, io: Io): Promise<number> {
  const options = readBucketOptions(action, parsed);
  const { servers, access } = readDebugCall(`bucket ${action}`, options.target, io);
  const server = servers[0] as DebugServer;
  const name = debugName(server);
  const ask = (): Promise<DebugResult<BucketAnswer>> =>
    callDebugPort(server, access, {
      path: '/buckets',
      body: options.question,
      changes: changesSomething(options.question),
      fields: {
        action: 'string',
        domain: 'string',
        entries: 'list',
        meets: 'string',
        buckets: 'list',
        notes: 'list',
      },
    });
  const first = await ask();
  if (!first.ok) throw new CommandError(EXIT.FAILED, first.sentence);
  if (options.watchMs !== undefined) {
    return watch<DebugResult<BucketAnswer>>(first, options.watchMs, io, ask, (result) => {
      if (!result.ok) io.err(`weir bucket ${action}: ${result.sentence}\n`);
      else if (options.json) io.out(`${printableJson(result.answer)}\n`);
      else io.out(`${timeOfDay()}\n${bucketLines(result.answer, name).join('\n')}\n\n`);
    });
  }
  const text = options.json ? printableJson(first.answer, 2) : bucketLines(first.answer, name).join('\n');
  io.out(`${text}\n`);
  return exitCodeOf(first.answer);
}

function unknownActionMessage(action: string): string {
  if (action === '') return `specify an action: ${ACTIONS.join(', ')}${SEE_HELP}`;
  const meant = nearest(action, ACTIONS);
  const removed = meant === undefined ? nearest(`bucket ${action}`, REMOVED_COMMANDS.keys(), 1) : undefined;
  const unknown = `unknown action ${JSON.stringify(action)}`;
  if (removed !== undefined) return `${unknown}; ${REMOVED_COMMANDS.get(removed)}`;
  const hint =
    meant === undefined
      ? `; the actions are ${ACTIONS.join(', ')}. To block or exempt a customer, set blocked or unlimited in the ` +
        'table of plans'
      : ` (did you mean ${meant}?)`;
  return unknown + hint + SEE_HELP;
}

function exitCodeOf({ action, meets, buckets }: BucketAnswer): number {
  const changesBuckets = action === 'reset' || action === 'grant' || action === 'release';
  if (changesBuckets && !buckets.some(({ now }) => now !== undefined)) return EXIT.FAILED;
  return action === 'show' && meets === 'nothing' ? EXIT.FAILED : EXIT.OK;
}

/** Prints a new token and its line for ADMIN_TOKENS_FILE. The token is not stored. */
function printNewToken(
  { values, positionals }: ParsedArguments<typeof NEW_TOKEN_OPTIONS>,
  { out }: Pick<Io, 'out'>,
): number {
  const wrong = (sentence: string): CommandError => usageError('bucket', sentence);
  const [name, right, ...others] = positionals;
  if (name === undefined || others.length > 0)
    throw wrong('specify a name for the token, and its permission: read or write');
  const fault = tokenNameFault(name);
  if (fault !== undefined) throw wrong(fault);
  if (right !== 'read' && right !== 'write')
    throw wrong('specify the permission after the name: read, or write, which includes read');
  const { token, line } = newAdminToken(name, right);
  out(
    values.json === true
      ? `${JSON.stringify({ token, line })}\n`
      : `The token, which is shown only once:\n  ${token}\nThe line for ADMIN_TOKENS_FILE:\n  ${line}\n`,
  );
  return EXIT.OK;
}

const WIDTH = 80;

const BUCKET_COLUMNS: readonly Column[] = [
  { heading: 'LEFT', side: 'right' },
  { heading: 'LIMIT', side: 'right' },
  { heading: 'DEBT', side: 'right' },
  { heading: 'RESET IN', side: 'right' },
  { heading: 'FULL IN', side: 'right' },
  { heading: 'ENFORCED', side: 'left' },
  { heading: 'RULE', side: 'left' },
];
const HOLD_COLUMNS: readonly Column[] = [
  { heading: 'AGE', side: 'right' },
  { heading: 'EXPIRES IN', side: 'right' },
  { heading: 'HELD', side: 'right' },
  { heading: 'HOLD', side: 'left' },
];

/** Text for each value of {@link ShownBucket.enforcement}. */
export const ENFORCED_WORDS: ReadonlyMap<string, string> = new Map([
  ['enforce', 'yes'],
  ['observe', 'no'],
  ['quota', 'with other quotas'],
  ['spill', 'with its chain'],
]);

function bucketLines(answer: BucketAnswer, server: string): readonly string[] {
  const parts = [headLines(answer, server), bucketsPart(answer), notesPart(answer)];
  return parts.filter((part) => part.length > 0).flatMap((part, at) => (at === 0 ? part : ['', ...part]));
}

function headLines(
  { action, domain, entries, store, dry_run }: BucketAnswer,
  server: string,
): readonly string[] {
  const lines: string[] = [];
  if (dry_run) lines.push(`dry run of ${action}: no changes were made`);
  lines.push(`domain   ${shellText(domain)}`, `entries  ${entriesText(entries)}`);
  lines.push(`server   ${printable(server)}`, `store    ${printable(store)}`);
  return lines;
}

function bucketsPart(answer: BucketAnswer): readonly string[] {
  const { buckets, more, meets, entries } = answer;
  const lines: string[] = [];
  if (meets === 'part' && buckets.length > 0) {
    lines.push('Limits that could apply to descriptors with these entries:', '');
  }
  if (buckets.length > 0) {
    const [head = '', ...rows] = tableLines(BUCKET_COLUMNS, buckets.map(bucketRow));
    lines.push(head);
    for (const [at, bucket] of buckets.entries()) {
      lines.push(rows[at] ?? '', ...detailLines(bucket, entriesText(entries)));
    }
  }
  if (more > 0) lines.push(`Limits not listed: ${more}. To see these limits, enter more entries.`);
  return lines;
}

function bucketRow({ now, before, limit, enforcement, rule, name }: ShownBucket): readonly string[] {
  const change = (tell: (level: BucketLevel) => string): string => {
    const [was, is] = [before, now].map((level) => level && tell(level));
    if (was === undefined || was === is) return is ?? was ?? '?';
    return is === undefined ? was : `${was} -> ${is}`;
  };
  return [
    change(({ left }) => String(left)),
    String(limit),
    change(({ debt }) => (debt === 0 ? '-' : String(debt))),
    timeText(now?.next_token_in),
    timeText(now?.full_in),
    ENFORCED_WORDS.get(enforcement) ?? printable(enforcement),
    printable(rule + (name === '' ? '' : ` (${name})`)),
  ];
}

/** Formats a time: `?` if the level is unknown, and `-` if the limit has no such time. */
function timeText(seconds: number | null | undefined): string {
  if (seconds === undefined) return '?';
  return seconds === null ? '-' : secondsText(seconds);
}

function detailLines(bucket: ShownBucket, asked: string): readonly string[] {
  const { about, entries, redis_key: key, redis_slot: slot, note } = bucket;
  const own = entriesText(entries);
  const lines = wrapped(printable(about), WIDTH - 6);
  return [
    ...lines,
    ...(bucket.now?.in_flight === undefined ? [] : [`in flight: ${bucket.now.in_flight} of ${bucket.limit}`]),
    // A bucket without a level is not a bucket yet, because the values of some entries are unknown.
    ...(bucket.now === undefined || own === asked || own === '' ? [] : [`for ${own}`]),
    // The key is shown in full, because users copy it to redis-cli.
    ...(key === null ? [] : [`Redis key ${printable(key)}${slot === null ? '' : `, slot ${slot}`}`]),
    ...(note === undefined ? [] : wrapped(printable(note), WIDTH - 6)),
    ...holdLines(bucket.holds),
  ].map((line) => `      ${line}`);
}

function holdLines(holds: ShownHolds | undefined): readonly string[] {
  if (holds === undefined || holds.list.length === 0) return [];
  const rows = holds.list.map(({ id, amount, age, ends_in }) => [
    secondsText(age),
    secondsText(ends_in),
    String(amount),
    printable(id),
  ]);
  const lines = tableLines(HOLD_COLUMNS, rows);
  return holds.more > 0 ? [...lines, `and ${holds.more} more, not listed`] : lines;
}

function notesPart({ notes, meets }: BucketAnswer): readonly string[] {
  const none =
    'No limit matches these entries or any descriptor that contains these entries. To find the reason, ' +
    'run weir explain.';
  return (meets === 'nothing' && notes.length === 0 ? [none] : notes).flatMap((note) =>
    wrapped(printable(note), WIDTH),
  );
}
