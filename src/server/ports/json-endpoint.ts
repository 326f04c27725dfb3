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
 * Decides an encoded RateLimitRequest whose caller waits `timeoutMicros` at most (Infinity: for ever); the answer is
 * an encoded RateLimitResponse. `waiter` says who: requests that take long, of all that nothing is known of, wait for
 * each other.
 */
export type Decide = (
  message: Uint8Array,
  timeoutMicros: number,
  waiter?: Pick<Waiter, 'connection' | 'cancelled'> & { readonly headers?: CallHeaders | undefined },
) => Uint8Array | Refusal | Promise<Uint8Array | Refusal>;

/** Told of each call, to be counted: how long it took from its whole body to its answer, and how it was refused. */
export interface JsonCalls {
  ended(micros: number): void;
  /** `code` is the status that gRPC would have answered. */
  refused(code: 'INVALID_ARGUMENT' | 'UNAVAILABLE' | 'PERMISSION_DENIED'): void;
}

export interface JsonEndpointOptions {
  readonly codec: JsonCodec;
  readonly decide: Decide;
  /** Whether only this machine reaches the port. */
  readonly isOnLoopback: boolean;
  readonly maxBodyBytes: number;
  /** Where what is long has its turns, one for the whole process. */
  readonly turns: TurnQueue;
  readonly calls: JsonCalls;
  monotonicMicros(): number;
}

/** By which browsers reach it: something before it may end TLS. */
const SCHEMES = ['http', 'https'];

/** Bodies and answers of at most so many bytes take their time at once: it is a tenth of a millisecond. */
const MAX_INLINE_BYTES = 4 * 1024;

const ABANDON_REASONS: Readonly<Record<AbandonReason, string>> = {
  cancelled: 'the caller has gone',
  late: 'grpc-timeout was over before the request was read',
  full: 'too many long requests wait',
};

/** Bytes that are copied in a step. */
const BYTES_PER_STEP = 256 * 1024;

function lengthOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** The whole of a body. */
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
 * `/json`: ShouldRateLimit for callers without gRPC. 200 OK, 429 OVER_LIMIT, 400 what is wrong with the request, 503 no
 * decision could be had; the reason stands in the body and in a header. A `grpc-timeout` header says how long the
 * caller waits. Pages of other sites get 403 or 421: a browser sends what they write without asking the server first.
 */
export function jsonEndpoint(options: JsonEndpointOptions): HttpEndpoint {
  const { codec, decide, isOnLoopback, maxBodyBytes, turns, calls } = options;
  /** What `steps` come to; when they take long, in turns with all that takes long. */
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
  /** What is decided is told, even when it is late, and at once where no more may wait: it was counted. */
  const decodeResponse = async (decided: Uint8Array, { connection }: HttpCall): Promise<JsonResponse> => {
    const steps = codec.responseFromWire(decided);
    if (decided.length <= MAX_INLINE_BYTES) return runToCompletion(steps);
    const deadlineMicros = Number.POSITIVE_INFINITY;
    const decoded = await turns.run(steps, {
      connection,
      cancelled: () => false,
      deadlineMicros: deadlineMicros,
    });
    // Nothing was begun.
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
      return badRequest('grpc-timeout must be at most 8 digits and one of H M S m u n');
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
    help: 'decides a RateLimitRequest: POST, protobuf JSON both ways',
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
