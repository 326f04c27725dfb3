import { version } from '../runtime/assets.js';
import { nodeVersionNotes, tuneGarbageCollector } from '../server/node-process.js';
import { overlookedPolicies } from '../server/policies/policy-place.js';
import { readSettings } from '../server/settings/read-settings.js';
import { VARIABLES } from '../server/settings/settings-table.js';
import { StartError, StartStopped } from '../server/start-error.js';
import { readArguments } from './arguments.js';
import { CommandError, EXIT, type Io } from './io.js';

/**
 * Runs `weir serve`. Resolves after the server has drained on SIGTERM or SIGINT, or if it could not start. `notes` are
 * additional lines for the start of the log.
 */
export async function runServe(
  args: readonly string[],
  io: Io,
  notes: readonly string[] = [],
): Promise<number> {
  if (io.worker) {
    tuneGarbageCollector();
    const { runWorker } = await import('../server/workers/worker.js');
    return (await runWorker()) ? EXIT.OK : EXIT.FAILED;
  }
  const options = Object.fromEntries(
    VARIABLES.map(({ flag }) => [flag.slice(2), { type: 'string' as const }]),
  );
  const { values, positionals } = readArguments('serve', args, options);
  if (positionals.length > 0)
    throw new CommandError(
      EXIT.USAGE,
      `unexpected argument ${JSON.stringify(positionals[0])}; to specify a policy, use --config-path <path> (see ` +
        'weir serve --help)',
    );
  const flags = Object.fromEntries(VARIABLES.map(({ name, flag }) => [name, values[flag.slice(2)]]));
  const read = readSettings(io.environment, flags);
  if (!read.ok) {
    io.err(read.errors.map((error) => `weir: ${error}\n`).join(''));
    return read.byFlag ? EXIT.USAGE : EXIT.FAILED;
  }
  // The handler is installed before the start, so that a signal also stops a server that is still starting.
  const stopping = new AbortController();
  const stop = new Promise<string>((resolve) => {
    io.onSignal((signal) => {
      if (signal === 'SIGHUP') {
        reload?.();
        return;
      }
      stopping.abort();
      resolve(signal);
    });
  });
  let reload: (() => void) | undefined;
  // The server is imported only now, so that invalid settings are reported immediately.
  tuneGarbageCollector();
  const { startServer } = await import('../server/start.js');
  const started = await startServer(read.settings, {
    version: version(),
    terminal: io.terminal,
    entry: io.entry,
    notes: [...nodeVersionNotes(), ...notes, ...read.notes, ...overlookedPolicies(read.settings)],
    stopping: stopping.signal,
  }).catch((error: unknown) => {
    if (error instanceof StartError || error instanceof StartStopped) return error;
    throw error;
  });
  if (started instanceof StartStopped) return EXIT.OK;
  const fail = ({ lines }: StartError): number => {
    io.err(lines.map((line) => `weir: ${line}\n`).join(''));
    return EXIT.FAILED;
  };
  if (started instanceof StartError) return fail(started);
  reload = () => started.reload();
  const ended = await Promise.race([stop, started.failed]);
  if (!(ended instanceof StartError)) {
    await started.drain(ended);
    return EXIT.OK;
  }
  const code = fail(ended);
  await started.drain('weir cannot continue');
  return code;
}
