import { readFileSync } from 'node:fs';
import { httpRequest } from '../process/http-client.js';
import { waitFor } from '../process/wait-for.js';
import type { WeirServer } from './weir.js';

/** A worker process as `/healthcheck?detail` shows it. */
export interface WorkerDetail {
  readonly id: number;
  readonly pid: number;
  readonly status: string;
  readonly silentSeconds?: number;
}

/** Returns the worker processes of a server. */
export async function workersOf(server: WeirServer): Promise<readonly WorkerDetail[]> {
  const { body } = await httpRequest(server.httpPort, '/healthcheck?detail');
  return JSON.parse(body).workers;
}

/** Resolves when each worker of a new server serves. */
export async function untilAllServe(server: WeirServer): Promise<void> {
  await waitFor('every worker to serve', async () =>
    ((await workersOf(server)) ?? []).every(({ status }) => status === 'SERVING'),
  );
}

/** Returns the value of a series of `/metrics` with the name and labels `line`; NaN if there is no such series. */
export async function metric(server: WeirServer, line: string): Promise<number> {
  const { body } = await httpRequest(server.httpPort, '/metrics');
  const found = body.split('\n').find((one) => one.startsWith(`${line} `));
  return Number(found?.slice(line.length));
}

/** Returns whether a process runs; a process that has exited but was not reaped yet is a zombie, and does not run. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
