import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { prefixed } from '../../support/h2/http2-client.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { toolPath } from '../../support/process/tools.js';
import { endedChildrenMicros } from '../cpu.js';
import { type LoadResult, percentiles } from './load-result.js';

export interface H2loadOptions {
  /** Host and port, such as `127.0.0.1:8081`. */
  readonly address: string;
  readonly tls: boolean;
  /** An encoded RateLimitRequest; undefined to send `GET /`, as a client of a proxy does. */
  readonly message: Uint8Array | undefined;
  readonly headers?: readonly string[];
  readonly requests: number;
  readonly connections: number;
  readonly streams: number;
  /** Requests per second; undefined to send the next request after each answer. */
  readonly rate: number | undefined;
}

/** Sends the same request repeatedly with h2load, and waits for all answers. Throws an error if a request failed. */
export async function h2load(options: H2loadOptions): Promise<LoadResult> {
  const { requests, message } = options;
  const connections = Math.min(options.connections, requests);
  const folder = new TempDir();
  try {
    const log = folder.join('log');
    const args = ['-n', String(requests), '-c', String(connections), '-m', String(options.streams)];
    args.push('--log-file', log);
    if (options.rate !== undefined) args.push('--rps', String(Math.max(1, options.rate / connections)));
    for (const header of options.headers ?? []) args.push('-H', header);
    let path = '/';
    if (message !== undefined) {
      writeFileSync(folder.join('body'), prefixed(message));
      args.push('-d', folder.join('body'), '-H', 'content-type: application/grpc', '-H', 'te: trailers');
      path = SHOULD_RATE_LIMIT_PATH;
    }
    const before = endedChildrenMicros();
    const { stdout } = await promisify(execFile)(
      toolPath('h2load'),
      [...args, `${options.tls ? 'https' : 'http'}://${options.address}${path}`],
      { maxBuffer: 1 << 24 },
    );
    const seconds = /finished in ([\d.]+)(m?s)/.exec(stdout);
    const succeeded = /status codes: (\d+) 2xx/.exec(stdout);
    if (seconds === null || Number(succeeded?.[1]) !== requests) {
      throw new Error(`not all requests of h2load succeeded:\n${stdout}`);
    }
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
    return {
      requests,
      seconds: Number(seconds[1]) / (seconds[2] === 'ms' ? 1000 : 1),
      ...percentiles(Float64Array.from(lines, (line) => Number(line.split('\t')[2]))),
      clientMicros: endedChildrenMicros() - before,
      overLimit: undefined,
    };
  } finally {
    folder.remove();
  }
}
