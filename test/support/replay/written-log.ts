import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Columns } from '../../../src/replay/log/columns.js';
import { jsonFormat, type LogFormat } from '../../../src/replay/log/log-format.js';
import type { LoggedRequest, LogOptions, ReadTotals } from '../../../src/replay/log/logged-request.js';
import { openLog } from '../../../src/replay/log/open-log.js';

/** A short format of JSON lines. */
export const SHORT_FORMAT: LogFormat = jsonFormat('the short format', [
  { path: ['at'], operators: ['START_TIME'] },
  { path: ['tenant'], operators: ['REQ(x-tenant)'] },
]);

export const START = Date.parse('2026-11-26T08:00:00Z');

/** Returns a line of the short format. `millis` is the time since START. */
export function shortLine(millis: number, tenant: string): string {
  return JSON.stringify({ at: new Date(START + millis).toISOString(), tenant });
}

/** A temporary folder for files. */
export class LogFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'weir-log-'));

  /** Writes a file, and returns its path. */
  write(name: string, content: string | Uint8Array): string {
    const path = join(this.path, name);
    writeFileSync(path, content);
    return path;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** A log that was read to its end. */
export interface ReadLog {
  readonly requests: readonly LoggedRequest[];
  readonly totals: ReadTotals;
  /** `millis since START: values`, such as `1500: acme`. */
  readonly texts: readonly string[];
  readonly formats: readonly string[];
}

/** Reads a log with the values of `operators`. */
export async function readAll(
  paths: readonly string[],
  options: Partial<LogOptions> = {},
  operators: readonly string[] = ['REQ(x-tenant)'],
): Promise<ReadLog> {
  const columns = new Columns();
  for (const operator of operators) columns.indexOf(operator);
  const log = await openLog({ paths, formats: [SHORT_FORMAT], ...options });
  const requests: LoggedRequest[] = [];
  let totals: ReadTotals | undefined;
  for await (const batch of log.requests(columns)) {
    requests.push(...batch.requests);
    totals = batch.totals;
  }
  if (totals === undefined) throw new Error('the log has no batches');
  const texts = requests.map(
    ({ startMicros, values }) => `${startMicros / 1000 - START}: ${values.join(' ')}`,
  );
  return { requests, totals, texts, formats: log.formats.map(({ title }) => title) };
}
