import {
  BUCKET_ACTIONS,
  type BucketAnswer,
  type BucketLevel,
  changesSomething,
  type ShownBucket,
  type ShownHold,
  type ShownHolds,
} from '../../admin/buckets/messages.js';
import { nearest } from '../../nearest-name.js';
import { printableJson } from '../../printable.js';
import { REMOVED_COMMANDS } from '../../runtime/removed-names.js';
import {
  areEntries,
  isBoolean,
  isNumber,
  isText,
  listOf,
  nullable,
  objectOf,
  optional,
} from '../call/answer-shape.js';
import { callDebugPort, type DebugResult } from '../call/debug-call.js';
import {
  type DebugAccess,
  type DebugServer,
  debugName,
  type Found,
  readDebugAccess,
  readDebugTarget,
  sendsTokenInClear,
} from '../call/debug-server.js';
import { EXIT, type Io } from '../io.js';
import { timeOfDay, watch } from '../watch.js';
import { type BucketOptions, isBucketAction, readBucketOptions } from './bucket-options.js';
import { bucketLines } from './bucket-report.js';
import { NEW_TOKEN, runNewToken } from './new-token.js';

const isLevel = objectOf<BucketLevel>({
  left: isNumber,
  debt: isNumber,
  next_token_in: nullable(isNumber),
  full_in: nullable(isNumber),
  in_flight: optional(isNumber),
});

const isHolds = objectOf<ShownHolds>({
  list: listOf(objectOf<ShownHold>({ id: isText, amount: isNumber, age: isNumber, ends_in: isNumber })),
  more: isNumber,
});

const isBucket = objectOf<ShownBucket>({
  rule: isText,
  name: isText,
  algorithm: isText,
  limit: isNumber,
  about: isText,
  enforcement: isText,
  entries: areEntries,
  redis_key: nullable(isText),
  redis_slot: nullable(isNumber),
  now: optional(isLevel),
  before: optional(isLevel),
  holds: optional(isHolds),
  released: optional(isNumber),
  note: optional(isText),
});

const isBucketAnswer = objectOf<BucketAnswer>({
  action: isText,
  dry_run: isBoolean,
  domain: isText,
  entries: areEntries,
  meets: isText,
  store: isText,
  buckets: listOf(isBucket),
  more: isNumber,
  notes: listOf(isText),
});

const ACTIONS: readonly string[] = [...BUCKET_ACTIONS, NEW_TOKEN];

/** Runs `weir bucket`. Resolves with exit code 0 if the action succeeded and, for `show`, if a limit could apply. */
export async function runBucket(args: readonly string[], io: Io): Promise<number> {
  const [action = '', ...rest] = args;
  if (action === NEW_TOKEN) return runNewToken(rest, io);
  if (!isBucketAction(action)) {
    io.err(unknownActionMessage(action));
    return EXIT.USAGE;
  }
  const options = readBucketOptions(action, rest);
  if (typeof options === 'string') {
    io.err(options);
    return EXIT.USAGE;
  }
  const fail = (messages: readonly string[]): void => {
    for (const message of messages) io.err(`weir bucket ${action}: ${message}\n`);
  };
  const server = readDebugTarget(options.target, io.environment);
  const access = readDebugAccess(options.target, io.environment);
  for (const read of [server, access] as readonly Found<unknown>[]) {
    if (read.kind === 'found') continue;
    fail(read.kind === 'usage' ? [read.message] : read.messages);
    return read.kind === 'usage' ? EXIT.USAGE : EXIT.FAILED;
  }
  if (server.kind !== 'found' || access.kind !== 'found') return EXIT.FAILED;
  const name = debugName(server.found);
  if (sendsTokenInClear(server.found, access.found))
    fail([`the token is sent to ${name} in plain text; use https:// to protect the token`]);
  const ask = (): Promise<DebugResult<BucketAnswer>> => askBuckets(server.found, access.found, options);
  const first = await ask();
  if (!first.ok) {
    fail([first.sentence]);
    return EXIT.FAILED;
  }
  if (options.watchMs !== undefined) {
    return watch<DebugResult<BucketAnswer>>(first, options.watchMs, io, ask, (result) => {
      if (!result.ok) fail([result.sentence]);
      else if (options.json) io.out(`${printableJson(result.answer)}\n`);
      else io.out(`${timeOfDay()}\n${bucketLines(result.answer, name).join('\n')}\n\n`);
    });
  }
  const text = options.json ? printableJson(first.answer, 2) : bucketLines(first.answer, name).join('\n');
  io.out(`${text}\n`);
  return exitCodeOf(first.answer);
}

function unknownActionMessage(action: string): string {
  if (action === '') return `weir bucket: specify an action: ${ACTIONS.join(', ')}; see weir bucket --help\n`;
  const meant = nearest(action, ACTIONS);
  const removed = meant === undefined ? nearest(`bucket ${action}`, REMOVED_COMMANDS.keys(), 1) : undefined;
  if (removed !== undefined) {
    return `weir bucket: unknown action ${JSON.stringify(action)}; ${REMOVED_COMMANDS.get(removed)}\n`;
  }
  const hint =
    meant === undefined
      ? `; the actions are ${ACTIONS.join(', ')}. To block or exempt a customer, set blocked or unlimited in the ` +
        'table of plans'
      : ` (did you mean ${meant}?)`;
  return `weir bucket: unknown action ${JSON.stringify(action)}${hint}; see weir bucket --help\n`;
}

function askBuckets(
  server: DebugServer,
  access: DebugAccess,
  { question }: BucketOptions,
): Promise<DebugResult<BucketAnswer>> {
  return callDebugPort(server, access, {
    path: '/buckets',
    body: question,
    changes: changesSomething(question),
    isAnswer: isBucketAnswer,
  });
}

function exitCodeOf({ action, meets, buckets }: BucketAnswer): number {
  const changesBuckets = action === 'reset' || action === 'grant' || action === 'release';
  if (changesBuckets && !buckets.some(({ now }) => now !== undefined)) return EXIT.FAILED;
  return action === 'show' && meets === 'nothing' ? EXIT.FAILED : EXIT.OK;
}
