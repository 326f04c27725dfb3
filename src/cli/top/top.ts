import { printableJson } from '../../printable.js';
import {
  type DebugAccess,
  debugName,
  type Found,
  readDebugAccess,
  readDebugTarget,
  sendsTokenInClear,
} from '../call/debug-server.js';
import { EXIT, type Io } from '../io.js';
import { timeOfDay, watch } from '../watch.js';
import { askTop, type TopResult, type TopTarget, targetName } from './ask-top.js';
import { readReplicas } from './replicas.js';
import { readTopOptions, type TopOptions } from './top-options.js';
import { topLines } from './top-report.js';

/** Interval of `--watch` in milliseconds. */
const WATCH_MS = 2000;

/** Runs `weir top`. Resolves with exit code 0 if every server answered. */
export async function runTop(args: readonly string[], io: Io): Promise<number> {
  const options = readTopOptions(args);
  if (typeof options === 'string') {
    io.err(options);
    return EXIT.USAGE;
  }
  const read = readTargetAndAccess(options, io.environment);
  if (read.kind !== 'found') {
    for (const message of read.kind === 'usage' ? [read.message] : read.messages) {
      io.err(`weir top: ${message}\n`);
    }
    return read.kind === 'usage' ? EXIT.USAGE : EXIT.FAILED;
  }
  const { target, access } = read.found;
  const servers = target.kind === 'one' ? [target.server] : target.list.map(({ server }) => server);
  const clear = servers.find((server) => sendsTokenInClear(server, access));
  if (clear !== undefined) {
    io.err(
      `weir top: the token is sent to ${debugName(clear)} in plain text; use https:// to protect the token\n`,
    );
  }
  const ask = (): Promise<TopResult> => askTop(target, access, options.question);
  const first = await ask();
  if (!options.watch || first.answer === undefined) return printTop(first, target, options, io);
  return watch(first, WATCH_MS, io, ask, (asked) => {
    printTop(asked, target, options, io);
  });
}

interface TargetAndAccess {
  readonly target: TopTarget;
  readonly access: DebugAccess;
}

function readTargetAndAccess(options: TopOptions, environment: Io['environment']): Found<TargetAndAccess> {
  const access = readDebugAccess(options.target, environment);
  if (access.kind !== 'found') return access;
  if (options.all !== undefined) {
    const list = readReplicas(options.all, options.target['tls-ca'] !== undefined);
    if (typeof list === 'string') return { kind: 'usage', message: list };
    return { kind: 'found', found: { target: { kind: 'all', list }, access: access.found } };
  }
  const server = readDebugTarget(options.target, environment);
  if (server.kind !== 'found') return server;
  return {
    kind: 'found',
    found: { target: { kind: 'one', server: server.found }, access: access.found },
  };
}

function printTop(asked: TopResult, target: TopTarget, options: TopOptions, io: Io): number {
  const { answer, answered, problems } = asked;
  if (answer !== undefined && options.json) {
    const all = target.kind === 'all' ? { ...answer, replicas: { answered, problems } } : answer;
    io.out(`${printableJson(all, options.watch ? undefined : 2)}\n`);
  } else if (answer !== undefined) {
    const table = topLines(answer, targetName(target, asked)).join('\n');
    io.out(options.watch ? `${timeOfDay()}\n${table}\n\n` : `${table}\n`);
  }
  for (const problem of problems) io.err(`weir top: ${problem}\n`);
  return answer === undefined || problems.length > 0 ? EXIT.FAILED : EXIT.OK;
}
