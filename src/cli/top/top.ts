import type { TopAnswer, TopBucket } from '../../admin/buckets/messages.js';
import { printable, printableJson } from '../../runtime/printable.js';
import { secondsText } from '../../runtime/texts.js';
import { readArguments } from '../arguments.js';
import { DEBUG_OPTIONS, type DebugTarget } from '../call/debug-options.js';
import { debugName, readDebugCall } from '../call/debug-server.js';
import { type CommandError, EXIT, type Io, usageError } from '../io.js';
import { type Column, tableLines } from '../table.js';
import { entriesText } from '../value-text.js';
import { timeOfDay, watch } from '../watch.js';
import { askTop, type FullTopQuestion, MAX_TOP_ROWS, type TopResult } from './ask-top.js';
import { readReplicas } from './replicas.js';

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

/** Prints a result under the name of the only server, or under the number of replicas. */
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

/** Returns the line shown if there are no rows. */
function nothingText({ by, of }: Pick<TopAnswer, 'by' | 'of'>): string {
  return by === 'denied'
    ? `no requests were denied in the last ${of}`
    : `no hits were used in the last ${of}`;
}

function ruleText({ domain, rule, plan }: TopBucket, withDomain: boolean): string {
  return printable(`${withDomain ? `${domain}: ` : ''}${rule}${plan === undefined ? '' : ` (plan ${plan})`}`);
}
