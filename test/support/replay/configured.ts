import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { missingValues } from '../../../src/replay/envoy/log-fields.js';
import { type EnvoyConfig, readEnvoy } from '../../../src/replay/envoy/read-envoy.js';
import type { RequestCalls } from '../../../src/replay/envoy/route-table.js';
import { Columns } from '../../../src/replay/log/columns.js';
import { jsonMembers } from '../../../src/replay/log/json-format.js';
import { jsonFormat } from '../../../src/replay/log/log-format.js';

/** Values of a log line by operator. */
export type Logged = Readonly<Record<string, string>>;

/** A configuration and the log lines to apply it to. */
export class Configured {
  readonly config: EnvoyConfig;
  private readonly columns = new Columns();

  /** `texts` are the files by name. */
  constructor(texts: Readonly<Record<string, string>>) {
    const files = Object.entries(texts).map(([name, text]) => ({ name, bytes: Buffer.from(text) }));
    this.config = readEnvoy(files, this.columns);
  }

  get errors(): readonly string[] {
    return this.config.problems.flatMap(({ errors }) => errors.map(formatProblem));
  }

  get warnings(): readonly string[] {
    return this.config.problems.flatMap(({ warnings }) => warnings.map(formatProblem));
  }

  /** Returns the calls for a line: `domain: key=value,key=value [hits]`, with `end` for the end of the stream. */
  calls(logged: Logged): readonly string[] {
    const values = this.columns.operators.map((operator) => logged[operator]);
    return this.config.callsOf(values).flatMap(callTexts);
  }

  /** Returns the members that a log with these format strings lacks. */
  missing(...formats: readonly string[]): ReturnType<typeof missingValues> {
    const members = Object.fromEntries(formats.map((format, i) => [String(i), format]));
    return missingValues(this.config.needs, jsonFormat('a test', jsonMembers(members)));
  }
}

function callTexts({ domain, start, end }: RequestCalls): readonly string[] {
  const textOf = ({ entries, hitsAddend, isNegativeHits }: RequestCalls['start'][number]) => {
    const hits = hitsAddend === undefined ? '' : ` [${isNegativeHits ? '-' : ''}${hitsAddend}]`;
    return entries.map(({ key, value }) => `${key}=${value}`).join(',') + hits;
  };
  return [
    ...start.map((descriptor) => `${domain}: ${textOf(descriptor)}`),
    ...end.map((descriptor) => {
      const hold = descriptor.holdEntry === undefined ? '' : ` hold at ${descriptor.holdEntry}`;
      return `${domain} end: ${textOf(descriptor)}${hold}`;
    }),
  ];
}
