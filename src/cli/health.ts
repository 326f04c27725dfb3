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
import { CommandError, EXIT, type Io, usageError } from './io.js';

const TIMEOUT_MS = 2000;
const CALL_OPTIONS = {
  method: HEALTH_CHECK_PATH,
  timeoutMs: TIMEOUT_MS,
  whenLate: 'check whether the server hangs or is overloaded',
};

/** Runs `weir health`. Resolves with exit code 0 if the server reports SERVING. */
export async function runHealth(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments('health', args, TARGET_OPTIONS);
  if (positionals.length > 0)
    throw usageError('health', 'this command accepts options, but no other arguments');
  const target = readTarget('health', values, io.environment);
  const { addressWithoutCertificate: httpAddress } = target;
  // The server requires a client certificate, which a probe does not have, so the command calls the HTTP port instead.
  if (httpAddress !== undefined) return report(io, await checkHttp(httpAddress));
  const client = openClient(target);
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
  throw new CommandError(EXIT.FAILED, problem);
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
