import { newAdminToken, tokenNameFault } from '../../admin/admin-tokens.js';
import {
  BUCKET_ACTIONS,
  type BucketAction,
  type BucketAnswer,
  changesSomething,
} from '../../admin/buckets/messages.js';
import { nearest } from '../../runtime/nearest-name.js';
import { printableJson } from '../../runtime/printable.js';
import { REMOVED_COMMANDS } from '../../runtime/removed-names.js';
import { type ParsedArguments, readArguments } from '../arguments.js';
import { callDebugPort, type DebugResult } from '../call/debug-call.js';
import { type DebugServer, debugName, readDebugCall } from '../call/debug-server.js';
import { CommandError, EXIT, type Io, reportErrors, usageError } from '../io.js';
import { timeOfDay, watch } from '../watch.js';
import {
  type BucketArguments,
  isBucketAction,
  readBucketArguments,
  readBucketOptions,
  SEE_HELP,
} from './bucket-options.js';
import { bucketLines } from './bucket-report.js';

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
