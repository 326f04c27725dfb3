import { newAdminToken, tokenNameFault } from '../../admin/admin-tokens.js';
import { BUCKET_ACTIONS, type BucketAnswer, changesSomething } from '../../admin/buckets/messages.js';
import { nearest } from '../../nearest-name.js';
import { printableJson } from '../../printable.js';
import { REMOVED_COMMANDS } from '../../runtime/removed-names.js';
import { readArguments } from '../arguments.js';
import { callDebugPort, type DebugResult } from '../call/debug-call.js';
import { debugName, readDebugCall } from '../call/debug-server.js';
import { EXIT, type Io } from '../io.js';
import { timeOfDay, watch } from '../watch.js';
import { isBucketAction, readBucketOptions } from './bucket-options.js';
import { bucketLines } from './bucket-report.js';

/** Action that calls no server. */
const NEW_TOKEN = 'new-token';
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
  const call = readDebugCall(`weir bucket ${action}`, options.target, io);
  if (typeof call === 'number') return call;
  const [server] = call.servers;
  if (server === undefined) return EXIT.FAILED;
  const name = debugName(server);
  const ask = (): Promise<DebugResult<BucketAnswer>> =>
    callDebugPort(server, call.access, {
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

function exitCodeOf({ action, meets, buckets }: BucketAnswer): number {
  const changesBuckets = action === 'reset' || action === 'grant' || action === 'release';
  if (changesBuckets && !buckets.some(({ now }) => now !== undefined)) return EXIT.FAILED;
  return action === 'show' && meets === 'nothing' ? EXIT.FAILED : EXIT.OK;
}

/** Runs `weir bucket new-token`: prints a new token and its line for ADMIN_TOKENS_FILE. The token is not stored. */
function runNewToken(args: readonly string[], { out, err }: Pick<Io, 'out' | 'err'>): number {
  const usage = (sentence: string): number => {
    err(`weir bucket ${NEW_TOKEN}: ${sentence}; see weir bucket --help\n`);
    return EXIT.USAGE;
  };
  const parsed = readArguments('bucket', args, { json: { type: 'boolean' } });
  if (typeof parsed === 'string') {
    err(parsed);
    return EXIT.USAGE;
  }
  const [name, right, ...others] = parsed.positionals;
  if (name === undefined || others.length > 0)
    return usage('specify a name for the token, and its permission: read or write');
  const fault = tokenNameFault(name);
  if (fault !== undefined) return usage(fault);
  if (right !== 'read' && right !== 'write') {
    return usage('specify the permission after the name: read, or write, which includes read');
  }
  const { token, line } = newAdminToken(name, right);
  out(
    parsed.values.json === true
      ? `${JSON.stringify({ token, line })}\n`
      : `The token, which is shown only once:\n  ${token}\nThe line for ADMIN_TOKENS_FILE:\n  ${line}\n`,
  );
  return EXIT.OK;
}
