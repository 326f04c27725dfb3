import { printableJson } from '../../printable.js';
import { debugName, readDebugCall } from '../call/debug-server.js';
import { EXIT, type Io } from '../io.js';
import { timeOfDay, watch } from '../watch.js';
import { askTop, type TopResult } from './ask-top.js';
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
  const { all, target, question } = options;
  const replicas = all === undefined ? undefined : readReplicas(all, target['tls-ca'] !== undefined);
  const call = readDebugCall('weir top', target, io, replicas);
  if (typeof call === 'number') return call;
  const { servers, access } = call;
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
