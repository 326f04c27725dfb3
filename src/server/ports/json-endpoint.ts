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
 * Decides an encoded RateLimitRequest whose caller waits `patienceMicros` at most (Infinity: for ever); the answer is
 * an encoded RateLimitResponse. `waiter` says who: requests that take long, of all that nothing is known of, wait for
 * each other.
 */
export type Decide = (
  message: Uint8Array,
  patienceMicros: number,
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
const SHORT_BYTES = 4 * 1024;

const NOT_DONE: Readonly<Record<AbandonReason, string>> = {
  cancelled: 'the caller has gone',
  late: 'grpc-timeout was over before the request was read',
  full: 'too many long requests wait',
};

/** Bytes that are copied in a step. */
const COPIED_BYTES = 256 * 1024;

function lengthOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** The whole of a body. */
function* joined(pieces: readonly Buffer[], bytes: number): Generator<void, Buffer> {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return only;
  const whole = Buffer.allocUnsafe(bytes);
  let at = 0;
  let pauseAt = COPIED_BYTES;
  for (const piece of pieces) {
    at += piece.copy(whole, at);
    if (at < pauseAt) continue;
    pauseAt = at + COPIED_BYTES;
    yield;
  }
  return whole;
}

function patienceOf(header: string | readonly string[] | undefined): number {
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
    giveUpMicros: number,
  ): Result | Promise<Result | AbandonReason> =>
    bytes <= SHORT_BYTES
      ? runToCompletion(steps)
      : turns.run(steps, { connection, cancelled: isCancelled, deadlineMicros: giveUpMicros, bytes });
  function* wireOf(pieces: readonly Buffer[], bytes: number): Generator<void, Uint8Array> {
    return yield* codec.requestToWire(yield* joined(pieces, bytes));
  }
  /** What is decided is told, even when it is late, and at once where no more may wait: it was counted. */
  const tell = async (decided: Uint8Array, { connection }: HttpCall): Promise<JsonResponse> => {
    const steps = codec.responseFromWire(decided);
    if (decided.length <= SHORT_BYTES) return runToCompletion(steps);
    const giveUpMicros = Number.POSITIVE_INFINITY;
    const told = await turns.run(steps, { connection, cancelled: () => false, deadlineMicros: giveUpMicros });
    // Nothing was begun.
    return typeof told === 'string' ? runToCompletion(steps) : told;
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
    const patience = patienceOf(call.headers['grpc-timeout']);
    if (Number.isNaN(patience)) {
      return badRequest('grpc-timeout must be at most 8 digits and one of H M S m u n');
    }
    const deadlineMicros = startMicros + patience;
    const bytes = lengthOf(call.body);
    let message: Uint8Array | AbandonReason;
    try {
      message = await run(bytes, wireOf(call.body, bytes), call, deadlineMicros);
    } catch (error) {
      if (error instanceof DecodeError) return badRequest(error.message);
      throw error;
    }
    if (typeof message === 'string') return unavailable(NOT_DONE[message]);
    const waiter = { connection: call.connection, cancelled: call.isCancelled, headers: call.headers };
    const decided = await decide(message, deadlineMicros - options.monotonicMicros(), waiter);
    if (decided instanceof Refusal) {
      return decided.kind === 'bad_request' ? badRequest(decided.message) : unavailable(decided.message);
    }
    const { overLimit, text } = await tell(decided, call);
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
