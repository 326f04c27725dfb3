import type { TopAnswer, TopBucket, TopQuestion } from '../../admin/buckets/messages.js';
import { printable, printableJson } from '../../runtime/printable.js';
import { secondsText } from '../../runtime/texts.js';
import { readArguments } from '../arguments.js';
import { callDebugPort } from '../call/debug-call.js';
import { DEBUG_OPTIONS, type DebugTarget } from '../call/debug-options.js';
import { type DebugAccess, type DebugServer, debugName, readDebugCall } from '../call/debug-server.js';
import { type CommandError, EXIT, type Io, usageError } from '../io.js';
import { type Column, entriesText, tableLines } from '../table.js';
import { timeOfDay, watch } from '../watch.js';
import { findReplicas, readReplicas } from './replicas.js';

/** Interval of `--watch` in milliseconds. */
const WATCH_MS = 2000;

/** Runs `weir top`. Resolves with exit code 0 if every server answered. */
export async function runTop(args: readonly string[], io: Io): Promise<number> {
  const options = readTopOptions(args);
  const { all, target, question } = options;
  const replicas = all === undefined ? undefined : readReplicas(all, target['tls-ca'] !== undefined);
  const { servers, access } = readDebugCall('top', target, io, replicas);
  const ask = (): Promise<TopResult> => askTop(servers, all !== undefined, access, question);
  const first = await ask();
  const [server] = servers;
  const name =
    all === undefined && server !== undefined ? debugName(server).replace('http://', '') : undefined;
  if (!options.watch || first.answer === undefined) return printTop(first, name, options, io);
  return watch(first, WATCH_MS, io, ask, (asked) => {
    printTop(asked, name, options, io);
  });
}

function printTop(result: TopResult, server: string | undefined, options: TopOptions, io: Io): number {
  const { answer, asked, answered, problems } = result;
  if (answer !== undefined && options.json) {
    const all = server === undefined ? { ...answer, replicas: { answered, problems } } : answer;
    io.out(`${printableJson(all, options.watch ? undefined : 2)}\n`);
  } else if (answer !== undefined) {
    const table = topLines(answer, server ?? `${answered} of ${asked} replicas`).join('\n');
    io.out(options.watch ? `${timeOfDay()}\n${table}\n\n` : `${table}\n`);
  }
  for (const problem of problems) io.err(`weir top: ${problem}\n`);
  return answer === undefined || problems.length > 0 ? EXIT.FAILED : EXIT.OK;
}

interface TopOptions {
  readonly question: FullTopQuestion;
  /** Whether to print the table again and again. */
  readonly watch: boolean;
  readonly json: boolean;
  /** Value of `--all`. */
  readonly all: string | undefined;
  readonly target: DebugTarget;
}

const OPTIONS = {
  ...DEBUG_OPTIONS,
  all: { type: 'string' },
  by: { type: 'string', default: 'denied' },
  of: { type: 'string', default: 'minute' },
  domain: { type: 'string' },
  rule: { type: 'string' },
  limit: { type: 'string', default: '20' },
  watch: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

function readTopOptions(args: readonly string[]): TopOptions {
  const { values, positionals } = readArguments('top', args, OPTIONS);
  const wrong = (sentence: string): CommandError => usageError('top', sentence);
  if (positionals.length > 0) throw wrong('this command accepts options, but no other arguments');
  const { by, of, domain, rule } = values;
  if (by !== 'denied' && by !== 'used') throw wrong('--by must be denied or used');
  if (of !== 'minute' && of !== 'hour') throw wrong('--of must be minute or hour');
  const limit = Number(values.limit);
  if (!/^\d+$/.test(values.limit) || limit < 1 || limit > MAX_TOP_ROWS)
    throw wrong(`--limit must be a whole number from 1 to ${MAX_TOP_ROWS}`);
  if (values.all !== undefined && values.address !== undefined)
    throw wrong('--all and --address cannot be combined; remove --address');
  const { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout } = values;
  return {
    question: { by, of, limit, ...(domain !== undefined && { domain }), ...(rule !== undefined && { rule }) },
    watch: values.watch === true,
    json: values.json === true,
    all: values.all,
    target: { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout },
  };
}

const COLUMNS: readonly Column[] = [
  { heading: 'DENIED', side: 'right' },
  { heading: 'USED', side: 'right' },
  { heading: 'OF LIMIT', side: 'right' },
  { heading: 'RULE', side: 'left' },
  { heading: 'ENTRIES', side: 'left' },
];

/** Formats the answer as a table, below lines with the period and the possible error. */
function topLines(answer: TopAnswer, from: string): readonly string[] {
  const hasSeveralDomains = answer.top.some(({ domain }) => domain !== answer.top[0]?.domain);
  const rows = answer.top.map((bucket) => [
    String(bucket.denied),
    String(bucket.used),
    `${Math.round(bucket.used_ratio * 100)}%`,
    ruleText(bucket, hasSeveralDomains),
    entriesText(bucket.entries),
  ]);
  const table = rows.length === 0 ? [nothingText(answer)] : tableLines(COLUMNS, rows);
  return [`most ${answer.by} in the last ${answer.of}, ${from}`, errorText(answer), '', ...table];
}

/** Returns a line with the possible error of the numbers, the sampling rate and an incomplete period. */
function errorText({ error, sampled, covers, of }: TopAnswer): string {
  const whole = of === 'minute' ? 60 : 3600;
  const parts = [
    ...(error.denied > 0 || error.used > 0
      ? [
          `numbers are too high by at most ${Math.round(error.denied)} denied requests and ` +
            `${Math.round(error.used)} used hits`,
        ]
      : []),
    ...(error.denied === 0 && error.used === 0 && sampled === 1 ? ['exact numbers'] : []),
    ...(sampled > 1 ? [`estimated from 1 in ${sampled} decisions`] : []),
    ...(covers < whole * 0.95 ? [`only ${secondsText(covers)} of data so far`] : []),
  ];
  return parts.join('; ');
}

function nothingText({ by, of }: Pick<TopAnswer, 'by' | 'of'>): string {
  return by === 'denied'
    ? `no requests were denied in the last ${of}`
    : `no hits were used in the last ${of}`;
}

function ruleText({ domain, rule, plan }: TopBucket, withDomain: boolean): string {
  return printable(`${withDomain ? `${domain}: ` : ''}${rule}${plan === undefined ? '' : ` (plan ${plan})`}`);
}

/** Merged answer of the replicas, and the failures. */
interface TopResult {
  /** Undefined if no replica answered. */
  readonly answer: TopAnswer | undefined;
  /** Number of replicas called, and number of replicas that answered. A replica with several addresses counts once. */
  readonly asked: number;
  readonly answered: number;
  /** Why other replicas did not answer: one sentence each, without a full stop. */
  readonly problems: readonly string[];
}

/** Maximum number of rows in the answer of a server. */
const MAX_TOP_ROWS = 1000;

/** Calls the replicas once. Never rejects. `isMerged`: whether they are all replicas, whose answers are merged. */
async function askTop(
  replicas: readonly DebugServer[],
  isMerged: boolean,
  access: DebugAccess,
  question: FullTopQuestion,
): Promise<TopResult> {
  const { servers, problems } = await findReplicas(replicas, access.timeoutMs);
  // All rows are requested, because a caller in the middle of one replica's list can be first in the merged list.
  const body = isMerged ? { ...question, limit: MAX_TOP_ROWS } : question;
  const results = await Promise.all(
    servers.map((server) =>
      callDebugPort<TopAnswer>(server, access, {
        path: '/top',
        body,
        fields: {
          of: 'string',
          by: 'string',
          covers: 'number',
          error: 'object',
          sampled: 'number',
          top: 'list',
        },
      }),
    ),
  );
  const answers = results.flatMap((result) => (result.ok ? [result.answer] : []));
  const distinct = withoutDuplicates(answers);
  const failures = results.flatMap((result) => (result.ok ? [] : [result.sentence]));
  const [first] = distinct;
  return {
    answer: isMerged && first !== undefined ? mergeTop(distinct, question) : first,
    asked: servers.length - (answers.length - distinct.length),
    answered: distinct.length,
    problems: [...problems, ...failures],
  };
}

/** Keeps one answer of each server, so that a server with several addresses is not counted twice. */
function withoutDuplicates(answers: readonly TopAnswer[]): readonly TopAnswer[] {
  const names = answers.map(({ server }) => server);
  return answers.filter(({ server }, at) => server === undefined || names.indexOf(server) === at);
}

/** A question with all defaults filled in. */
type FullTopQuestion = Required<Pick<TopQuestion, 'by' | 'of' | 'limit'>> & TopQuestion;

function sortTop(top: readonly TopBucket[], by: 'denied' | 'used'): readonly TopBucket[] {
  const other = by === 'denied' ? 'used' : 'denied';
  return [...top].sort((one, two) => two[by] - one[by] || two[other] - one[other]);
}

/**
 * Merges the answers of several replicas: numbers and errors of the same bucket are added. A replica that does not list
 * a bucket may have counted up to {@link TopAnswer.error} for it, so a sum may be wrong by that much in both
 * directions. The used ratio is the largest of any replica, because replicas with a shared Redis all see the same
 * bucket.
 */
export function mergeTop(answers: readonly TopAnswer[], { by, of, limit }: FullTopQuestion): TopAnswer {
  const buckets = new Map<string, TopBucket>();
  for (const one of answers.flatMap(({ top }) => top)) {
    const entries = one.entries.map(({ key, value }) => [key, value]);
    const name = JSON.stringify([one.domain, one.rule, one.limit, entries]);
    const known = buckets.get(name);
    buckets.set(name, known === undefined ? one : addBuckets(known, one));
  }
  const sum = (of: (answer: TopAnswer) => number): number => answers.reduce((all, one) => all + of(one), 0);
  return {
    of,
    by,
    covers: Math.min(...answers.map(({ covers }) => covers)),
    error: { denied: sum(({ error }) => error.denied), used: sum(({ error }) => error.used) },
    sampled: Math.max(...answers.map(({ sampled }) => sampled)),
    top: sortTop([...buckets.values()], by).slice(0, limit),
  };
}

function addBuckets(one: TopBucket, other: TopBucket): TopBucket {
  return {
    ...one,
    denied: one.denied + other.denied,
    denied_error: one.denied_error + other.denied_error,
    used: one.used + other.used,
    used_error: one.used_error + other.used_error,
    used_ratio: Math.max(one.used_ratio, other.used_ratio),
  };
}
