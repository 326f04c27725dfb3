import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { formatProblem } from '../config/yaml/config-problem.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { isSecretKey } from '../policy/redact.js';
import type { ReplayedServer } from '../replay/decide.js';
import { LogError } from '../replay/log-lines.js';
import { Replay } from '../replay/replay.js';
import { type LogMap, readReplayMap } from '../replay/replay-map.js';
import { type Bound, countText, reportOf } from '../replay/report.js';
import { RULES_HEADING, reportText } from '../replay/report-text.js';
import { printableJson } from '../runtime/printable.js';
import { answerOptions } from '../server/answer-options.js';
import { readSettings } from '../server/settings/read-settings.js';
import { readArguments } from './arguments.js';
import { CommandError, EXIT, type Io, PROGRESS_MS, usageError } from './io.js';
import { LOAD_OPTIONS, loadPolicy, readLoadOptions } from './load-options.js';
import { tableLines } from './table.js';

const OPTIONS = {
  policy: { type: 'string' },
  against: { type: 'string' },
  map: { type: 'string' },
  by: { type: 'string' },
  'max-newly-denied': { type: 'string' },
  json: { type: 'string' },
  ...LOAD_OPTIONS,
} as const;

/** Runs `weir replay`. Resolves with the exit code that its help describes. */
export async function runReplay(args: readonly string[], io: Io): Promise<number> {
  const asked = readOptions(args);
  const { by } = asked;
  const policy = loadPolicy(asked.policy, asked.load, io);
  const against = asked.against === undefined ? undefined : loadPolicy(asked.against, asked.load, io);
  const map = asked.map === undefined ? undefined : loadMap(asked.map, asked.policy, policy, io);
  const isLoaded = (asked.against === undefined || against) && (asked.map === undefined || map);
  if (policy === undefined || !isLoaded) return EXIT.FAILED;
  if (by !== undefined && isSecretOf(by, policy))
    throw usageError(
      'replay',
      `--by ${by}: the values of this key are secrets; use a key that "derive" sets`,
    );
  return replay(asked, { policy, against, map }, io);
}

async function replay(
  asked: ReturnType<typeof readOptions>,
  loaded: { policy: PolicySet; against: PolicySet | undefined; map: LogMap | undefined },
  io: Io,
): Promise<number> {
  const stop = new AbortController();
  io.onSignal(() => stop.abort());
  const { policy } = loaded;
  const { by, logs } = asked;
  const run = new Replay({
    ...loaded,
    by,
    logs,
    server: replayedServer(asked.load.holdEntry),
    signal: stop.signal,
    onProgress: progressOf(io),
  });
  try {
    const result = await run.run();
    const names = { policyName: asked.policy, againstName: asked.against };
    const report = reportOf({ result, policy, ...names, map: loaded.map, by, logs, bound: asked.bound });
    if (asked.json !== undefined) writeReport(asked.json, `${printableJson(report, 2)}\n`);
    io.out(reportText(report, table));
    if (report.gate?.result === 'exceeded') return EXIT.TIGHTENS;
    if (report.gate?.result === 'undecided') return EXIT.UNDECIDED;
    return report.partial || report.total.requests === 0 ? EXIT.FAILED : EXIT.OK;
  } catch (error) {
    if (error instanceof LogError) throw new CommandError(EXIT.FAILED, error.message);
    throw error;
  }
}

/** Returns the defaults of a server's settings, with another HOLD_ENTRY if it is given. */
export function replayedServer(holdEntry: string | undefined): ReplayedServer {
  const read = readSettings(holdEntry === undefined ? {} : { HOLD_ENTRY: holdEntry });
  if (!read.ok) throw new CommandError(EXIT.FAILED, ...read.errors);
  const { settings } = read;
  const { maxLimits, maxMatchWork, maxRegexValueBytes, memoryMaxBuckets, memoryMaxBytes } = settings;
  return {
    answers: answerOptions(settings),
    maxLimits,
    maxMatchWork,
    maxRegexValueBytes,
    maxBuckets: memoryMaxBuckets,
    maxBytes: memoryMaxBytes,
    countDeniedHits: !settings.stopIncrementWhenOver,
  };
}

function writeReport(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new CommandError(EXIT.FAILED, `--json: the report cannot be written: ${(error as Error).message}`);
  }
}

function readOptions(args: readonly string[]) {
  const { values, positionals: logs } = readArguments('replay', args, OPTIONS);
  const { policy, against, map, by, json } = values;
  if (policy === undefined) throw usageError('replay', 'specify the policy with --policy');
  if (json === '-')
    throw usageError('replay', '--json writes a file; specify its name, or /dev/stdout for standard output');
  if (logs.length === 0) throw usageError('replay', 'specify at least one log, or - for standard input');
  const twice = logs.find((log, at) => logs.findIndex((other) => resolve(other) === resolve(log)) < at);
  if (twice !== undefined)
    throw usageError('replay', `the log ${twice} is specified twice; specify each log once`);
  const text = values['max-newly-denied'];
  const bound = text === undefined ? undefined : readBound(text);
  const load = { ...readLoadOptions('replay', values), emptyIsError: true };
  return { policy, against, map, by, bound, json, logs, load };
}

function readBound(text: string): Bound {
  const [, digits, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const isPercent = percent === '%';
  const max = Number(digits);
  if (isPercent ? max <= 100 : Number.isInteger(max)) return { text, max, isPercent };
  throw usageError(
    'replay',
    '--max-newly-denied must be a number of requests such as 100, or a share such as 0.1%',
  );
}

/** Reads a map. If it is invalid, or about a domain without a policy, prints every error and returns undefined. */
function loadMap(
  name: string,
  policyName: string,
  policy: PolicySet | undefined,
  io: Io,
): LogMap | undefined {
  const map = readReplayMap(name);
  if (!('domain' in map)) {
    for (const error of map) io.err(`${formatProblem(error)}\n`);
    return undefined;
  }
  if (policy === undefined || policy.domains.has(map.domain)) return map;
  const domains = [...policy.domains.keys()].map((domain) => `"${domain}"`).join(', ');
  const message =
    `the map is for the domain "${map.domain}", but ${policyName} has the domain ${domains}; ` +
    'change one of them';
  io.err(`${formatProblem({ file: name, ...map.domainAt, path: 'domain', message })}\n`);
  return undefined;
}

function isSecretOf(key: string, { domains }: PolicySet): boolean {
  return [...domains.values()].some(({ secretKeys }) => isSecretKey(key, secretKeys));
}

/** Returns a callback that prints the number of lines, at most once every {@link PROGRESS_MS}, on a terminal. */
function progressOf(io: Io): (lines: number) => void {
  let dueMs = performance.now() + PROGRESS_MS;
  return (lines) => {
    if (!io.terminal || performance.now() < dueMs) return;
    dueMs = performance.now() + PROGRESS_MS;
    io.err(`weir replay: ${countText(lines)} lines read\n`);
  };
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const columns = headings.map((heading, at) => {
    const isText = at === 0 || heading === 'NOW' || heading === RULES_HEADING;
    return { heading, side: isText ? ('left' as const) : ('right' as const) };
  });
  return tableLines(columns, rows);
}
