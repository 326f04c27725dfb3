import { formatProblem } from '../../config/yaml/config-problem.js';
import { messageOf, readRegularFile } from '../../regular-file.js';
import type { ConfiguredCalls } from '../../replay/calls-in-log.js';
import { type EnvoyFile, readEnvoy } from '../../replay/envoy/read-envoy.js';
import { Columns } from '../../replay/log/columns.js';
import type { LogFormat } from '../../replay/log/log-format.js';
import { LogError } from '../../replay/log/logged-request.js';
import { type OpenLog, openLog } from '../../replay/log/open-log.js';
import { readLogFormat } from '../../replay/log/read-log-format.js';
import { isSameFile } from '../../written-files.js';

/** Maximum size of a configuration of Envoy. The output of /config_dump may be large. */
const MAX_CONFIG_BYTES = 256 * 1024 * 1024;

/** Options for reading a log. */
export interface LogArguments {
  readonly paths: readonly string[];
  /** Files with the configuration of Envoy, or a mapping. */
  readonly envoy: readonly string[];
  /** `--log-format`: a format string, or a file with one or with `json_format`. */
  readonly logFormat: string | undefined;
  readonly windowMicros: number;
  readonly slackMicros?: number;
  readonly maxUnreadable: number;
  readonly statedShare: number | undefined;
}

/** A log, and the calls that its requests make. */
export interface ReplayLog {
  readonly log: OpenLog;
  readonly columns: Columns;
  readonly envoy: ConfiguredCalls | undefined;
}

/**
 * Opens a log. Returns error messages, one for each line, if it cannot be read, or if `interrupt` aborts the wait for
 * its first lines. `warn` gets the other problems.
 */
export async function openReplayLog(
  options: LogArguments,
  warn: (line: string) => void,
  interrupt: AbortSignal,
): Promise<ReplayLog | readonly string[]> {
  const columns = new Columns();
  const twice = sameFile(options.envoy);
  if (twice !== undefined) return [twice];
  const files = options.envoy.map((name) => readFile(name));
  const unreadable = files.filter((file) => typeof file === 'string');
  if (unreadable.length > 0) return unreadable;
  const envoy = readEnvoy(files as readonly EnvoyFile[], columns);
  const errors = envoy.problems.flatMap((list) => list.errors.map(formatProblem));
  if (errors.length > 0) return errors;
  for (const list of envoy.problems) for (const warning of list.warnings) warn(formatProblem(warning));
  const named = options.logFormat === undefined ? undefined : readLogFormat(options.logFormat);
  if (typeof named === 'string') return [named];
  const formats: readonly LogFormat[] = named === undefined ? envoy.formats : [named];
  try {
    const { paths, windowMicros, slackMicros = 0, maxUnreadable, statedShare } = options;
    const log = await openLog(
      {
        paths,
        formats,
        onlyFormats: named !== undefined,
        windowMicros,
        slackMicros,
        maxUnreadable,
        ...(statedShare !== undefined && { statedShare }),
      },
      interrupt,
    );
    return { log, columns, envoy: files.length === 0 ? undefined : envoy };
  } catch (error) {
    if (error instanceof LogError) return [error.message];
    throw error;
  }
}

/** Returns an error message if two names are names of the same file, whose rate limits would apply twice. */
function sameFile(names: readonly string[]): string | undefined {
  const at = names.findIndex((name, i) => names.slice(0, i).some((other) => isSameFile(name, other)));
  const second = names[at];
  if (second === undefined) return undefined;
  const first = names.find((name) => isSameFile(name, second));
  return first === second
    ? `--envoy names "${first}" twice; name each file once`
    : `--envoy names "${first}" and "${second}", which are the same file; name only one of them`;
}

function readFile(name: string): EnvoyFile | string {
  try {
    return { name, bytes: readRegularFile(name, MAX_CONFIG_BYTES) };
  } catch (error) {
    return messageOf(error, name);
  }
}
