import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import { toolPath } from '../support/tools.js';

export interface LoadOptions {
  readonly port: number;
  /** An encoded RateLimitRequest. */
  readonly message: Uint8Array;
  readonly requests: number;
  readonly connections: number;
  readonly streams: number;
}

export interface LoadResult {
  readonly seconds: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
}

/** Length-prefixed message (gRPC over HTTP/2, "Length-Prefixed-Message"). */
function frame(message: Uint8Array): Buffer {
  const framed = Buffer.alloc(5 + message.length);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, 5);
  return framed;
}

/** Sends the same call over and over with h2load and waits for all answers. Throws when any call failed on HTTP level. */
export async function h2load(options: LoadOptions): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  try {
    const body = join(folder, 'body');
    const log = join(folder, 'log');
    writeFileSync(body, frame(options.message));
    const { stdout } = await promisify(execFile)(
      toolPath('h2load'),
      [
        ...['-n', String(options.requests), '-c', String(options.connections), '-m', String(options.streams)],
        ...['-d', body, '--log-file', log],
        ...['-H', 'content-type: application/grpc', '-H', 'te: trailers'],
        `http://127.0.0.1:${options.port}${SHOULD_RATE_LIMIT_PATH}`,
      ],
      { maxBuffer: 1 << 24 },
    );
    const seconds = /finished in ([\d.]+)(m?s)/.exec(stdout);
    const succeeded = /(\d+) succeeded/.exec(stdout);
    if (seconds === null || Number(succeeded?.[1]) !== options.requests) {
      throw new Error(`h2load did not get all its answers:\n${stdout}`);
    }
    const latencies = Float64Array.from(
      readFileSync(log, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => Number(line.split('\t')[2])),
    ).sort();
    return {
      seconds: Number(seconds[1]) / (seconds[2] === 'ms' ? 1000 : 1),
      p50Micros: latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN,
      p99Micros: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
