import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LoadClientOptions } from './load-client.js';
import type { LoadResult } from './load-result.js';

/** Runs load-client.ts in a separate process. Rejects with its error message after a failed call. */
export async function runLoadClient(options: LoadClientOptions): Promise<LoadResult> {
  const file = join(__dirname, 'load-client.js');
  const { stdout } = await promisify(execFile)(process.execPath, [file, JSON.stringify(options)]);
  return JSON.parse(stdout) as LoadResult;
}
