import type { JsonCodec } from '../../codec/json/json-codec.js';
import type { JsonResponse } from '../../codec/json/json-response.js';
import { DecodeError } from '../../codec/messages.js';
import { timeoutMicros } from '../../grpc/timeout-header.js';
import { crossSiteReason, dnsRebindingReason, isBrowserRequest } from '../../http/cross-site.js';
import { failed, type HttpAnswer, type HttpCall, type HttpEndpoint } from '../../http/http.js';
import { runToCompletion } from '../../runtime/turns.js';
import { Refusal } from '../../service/refusal.js';
import type { AbandonReason, TurnQueue, Waiter } from '../../service/turn-queue.js';
import type { CallHeaders } from '../calls/trace-id.js';

/**
 * Decides an encoded RateLimitRequest and returns an encoded RateLimitResponse. `timeoutMicros` is the caller's
 * timeout, or Infinity. `waiter` identifies the caller, because expensive requests of all connections take turns.
 * Requests without a `waiter` count as one connection.
 */
export type Decide = (
  message: Uint8Array,
  timeoutMicros: number,
  waiter?: Pick<Waiter, 'connection' | 'cancelled'> & { readonly headers?: CallHeaders | undefined },
) => Uint8Array | Refusal | Promise<Uint8Array | Refusal>;

/** Counts the calls of `/json`, with the time from the complete body to the answer, and with their refusals. */
export interface JsonCalls {
  ended(micros: number): void;
  /** `code` is the status that gRPC would return. */
  refused(code: 'INVALID_ARGUMENT' | 'UNAVAILABLE' | 'PERMISSION_DENIED'): void;
}

export interface JsonEndpointOptions {
  readonly codec: JsonCodec;
  readonly decide: Decide;
  /** Whether only this machine can reach the port. */
  readonly isOnLoopback: boolean;
  readonly maxBodyBytes: number;
  /** Queue for expensive requests, shared by the whole process. */
  readonly turns: TurnQueue;
  readonly calls: JsonCalls;
  monotonicMicros(): number;
}

/** Schemes that browsers may use: a proxy in front of weir may terminate TLS. */
const SCHEMES = ['http', 'https'];

/** Maximum size of bodies and answers that are processed immediately, which takes a tenth of a millisecond. */
const MAX_INLINE_BYTES = 4 * 1024;

const ABANDON_REASONS: Readonly<Record<AbandonReason, string>> = {
  cancelled: 'the caller canceled the request',
  late: 'grpc-timeout expired before the request was read',
  full: 'too many expensive requests are waiting',
};

/** Bytes copied in one step. */
const BYTES_PER_STEP = 256 * 1024;

function lengthOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Returns a body as one buffer. */
function* concatenate(pieces: readonly Buffer[], bytes: number): Generator<void, Buffer> {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return only;
  const whole = Buffer.allocUnsafe(bytes);
  let at = 0;
  let pauseAt = BYTES_PER_STEP;
  for (const piece of pieces) {
    at += piece.copy(whole, at);
    if (at < pauseAt) continue;
    pauseAt = at + BYTES_PER_STEP;
    yield;
  }
  return whole;
}

function readTimeoutMicros(header: string | readonly string[] | undefined): number {
  return typeof header === 'string' ? timeoutMicros(header) : Number.POSITIVE_INFINITY;
}

/**
 * Returns the endpoint `/json`: ShouldRateLimit for callers without gRPC. The status is 200 for OK, 429 for OVER_LIMIT,
 * 400 for an invalid request, or 503 without a decision. The body and a header contain the reason. A `grpc-timeout`
 * header sets the caller's timeout. Pages of other sites get 403 or 421, because browsers send their requests without
 * asking the server first.
 */
export function jsonEndpoint(options: JsonEndpointOptions): HttpEndpoint {
  const { codec, decide, isOnLoopback, maxBodyBytes, turns, calls } = options;
  /** Runs `steps` and returns their result: immediately if they are short, otherwise in the queue of expensive work. */
  const run = <Result>(
    bytes: number,
    steps: Generator<void, Result>,
    { connection, isCancelled }: HttpCall,
    deadlineMicros: number,
  ): Result | Promise<Result | AbandonReason> =>
    bytes <= MAX_INLINE_BYTES
      ? runToCompletion(steps)
      : turns.run(steps, { connection, cancelled: isCancelled, deadlineMicros: deadlineMicros, bytes });
  function* encodeRequest(pieces: readonly Buffer[], bytes: number): Generator<void, Uint8Array> {
    return yield* codec.requestToWire(yield* concatenate(pieces, bytes));
  }
  /** Encodes a decision that was already counted. It has no deadline, and does not wait if the queue is full. */
  const decodeResponse = async (decided: Uint8Array, { connection }: HttpCall): Promise<JsonResponse> => {
    const steps = codec.responseFromWire(decided);
    if (decided.length <= MAX_INLINE_BYTES) return runToCompletion(steps);
    const deadlineMicros = Number.POSITIVE_INFINITY;
    const decoded = await turns.run(steps, {
      connection,
      cancelled: () => false,
      deadlineMicros: deadlineMicros,
    });
    // The queue rejected the steps before it started them.
    return typeof decoded === 'string' ? runToCompletion(steps) : decoded;
  };
  const badRequest = (reason: string): HttpAnswer => {
    calls.refused('INVALID_ARGUMENT');
    return failed(400, reason);
  };
  const unavailable = (reason: string): HttpAnswer => {
    calls.refused('UNAVAILABLE');
    return failed(503, reason);
  };
  const answerAt = async (call: HttpCall, startMicros: number): Promise<HttpAnswer> => {
    const timeout = readTimeoutMicros(call.headers['grpc-timeout']);
    if (Number.isNaN(timeout)) {
      return badRequest('grpc-timeout must be 1 to 8 digits followed by H, M, S, m, u or n');
    }
    const deadlineMicros = startMicros + timeout;
    const bytes = lengthOf(call.body);
    let message: Uint8Array | AbandonReason;
    try {
      message = await run(bytes, encodeRequest(call.body, bytes), call, deadlineMicros);
    } catch (error) {
      if (error instanceof DecodeError) return badRequest(error.message);
      throw error;
    }
    if (typeof message === 'string') return unavailable(ABANDON_REASONS[message]);
    const waiter = { connection: call.connection, cancelled: call.isCancelled, headers: call.headers };
    const decided = await decide(message, deadlineMicros - options.monotonicMicros(), waiter);
    if (decided instanceof Refusal) {
      return decided.kind === 'bad_request' ? badRequest(decided.message) : unavailable(decided.message);
    }
    const { overLimit, text } = await decodeResponse(decided, call);
    return { status: overLimit ? 429 : 200, contentType: 'application/json', body: text };
  };
  return {
    path: '/json',
    help: 'POST: decides a RateLimitRequest; the request and response bodies are protobuf JSON',
    maxBodyBytes,
    refuse({ headers }) {
      const site = crossSiteReason(headers, SCHEMES);
      const name = isOnLoopback && isBrowserRequest(headers) ? dnsRebindingReason(headers) : undefined;
      const fault = site ?? name;
      if (fault === undefined) return undefined;
      calls.refused('PERMISSION_DENIED');
      return failed(site === undefined ? 421 : 403, fault);
    },
    async answer(call) {
      const startMicros = options.monotonicMicros();
      const answer = await answerAt(call, startMicros);
      calls.ended(options.monotonicMicros() - startMicros);
      return answer;
    },
  };
}
