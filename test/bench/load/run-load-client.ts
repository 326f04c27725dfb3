import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LoadOrder } from './load-client.js';
import type { LoadResult } from './load-result.js';

/** Runs the load generator of our own in its process. Rejects with what it said when a call failed. */
export async function runLoadClient(order: LoadOrder): Promise<LoadResult> {
  const file = join(__dirname, 'load-client.js');
  const { stdout } = await promisify(execFile)(process.execPath, [file, JSON.stringify(order)]);
  return JSON.parse(stdout) as LoadResult;
}
