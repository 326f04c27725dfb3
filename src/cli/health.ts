import { request } from 'node:http';
import type { Client, ServiceError } from '@grpc/grpc-js';
import {
  decodeHealthResponse,
  encodeHealthRequest,
  type HealthResponse,
} from '../codec/services/health-messages.js';
import { HEALTH_CHECK_PATH } from '../grpc/health.js';
import { readArguments } from './arguments.js';
import { failureAdvice } from './call/advice.js';
import { openClient } from './call/channel.js';
import { limitTime } from './call/debug-call.js';
import { readTarget, type ServerTarget, TARGET_OPTIONS } from './call/target.js';
import { EXIT, type Io } from './io.js';

const TIMEOUT_MS = 2000;
const CALL_OPTIONS = {
  method: HEALTH_CHECK_PATH,
  timeoutMs: TIMEOUT_MS,
  whenLate: 'check whether the server hangs or is overloaded',
};

/** Runs `weir health`. Resolves with exit code 0 if the server reports SERVING. */
export async function runHealth(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('health', args, TARGET_OPTIONS);
  if (typeof parsed === 'string' || parsed.positionals.length > 0) {
    io.err(
      typeof parsed === 'string'
        ? parsed
        : 'weir health: this command accepts options, but no other arguments; see weir health --help\n',
    );
    return EXIT.USAGE;
  }
  const found = readTarget(parsed.values, io.environment);
  if (found.kind === 'usage') {
    io.err(`weir health: ${found.message}\n`);
    return EXIT.USAGE;
  }
  if (found.kind === 'failed') {
    for (const message of found.messages) io.err(`weir health: ${message}\n`);
    return EXIT.FAILED;
  }
  const { target } = found;
  const { addressWithoutCertificate: httpAddress } = target;
  // The server requires a client certificate, which a probe does not have, so the command calls the HTTP port instead.
  if (httpAddress !== undefined) return report(io, await checkHttp(httpAddress));
  let client: Client;
  try {
    client = openClient(target);
  } catch (error) {
    io.err(`weir health: ${(error as Error).message}\n`);
    return EXIT.FAILED;
  }
  try {
    return report(io, await checkGrpc(client, target));
  } finally {
    client.close();
  }
}

/**
 * Calls the gRPC health service. Resolves with undefined if it reports SERVING, else with the reported status or the
 * reason why the call failed.
 */
function checkGrpc(client: Client, target: ServerTarget): Promise<string | undefined> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      HEALTH_CHECK_PATH,
      encodeHealthRequest,
      decodeHealthResponse,
      { service: '' },
      { deadline: Date.now() + TIMEOUT_MS },
      (error: ServiceError | null, response?: HealthResponse) => {
        if (error !== null) resolve(failureAdvice(error, target, CALL_OPTIONS));
        else resolve(statusProblem(target.address, response?.status ?? 'UNKNOWN'));
      },
    );
  });
}

function statusProblem(address: string, status: string): string | undefined {
  return status === 'SERVING' ? undefined : `${address}: ${status}`;
}

function report(io: Io, problem: string | undefined): number {
  if (problem === undefined) {
    io.out('SERVING\n');
    return EXIT.OK;
  }
  io.err(`weir health: ${problem}\n`);
  return EXIT.FAILED;
}

/** Requests `/healthcheck` from the HTTP port, with the same results as {@link checkGrpc}. */
function checkHttp(address: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const outgoing = request(`http://${address}/healthcheck`, { agent: false }, (response) => {
      response.resume();
      resolve(statusProblem(address, response.statusCode === 200 ? 'SERVING' : 'NOT_SERVING'));
    });
    limitTime(outgoing, TIMEOUT_MS);
    outgoing.on('error', (error) => {
      resolve(
        `no answer from http://${address}/healthcheck: ${error.message}; check the server, and check HOST and PORT`,
      );
    });
    outgoing.end();
  });
}
