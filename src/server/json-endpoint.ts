import type { JsonCodec } from '../codec/json-codec.js';
import { DecodeError } from '../codec/messages.js';
import { timeoutMicros } from '../grpc/timeout-header.js';
import type { Caller } from '../service/costly-requests.js';
import { Refusal } from '../service/should-rate-limit.js';
import { failed, type HttpEndpoint } from './http.js';

/**
 * Decides an encoded RateLimitRequest whose caller waits `patienceMicros` at most (Infinity: for ever); the answer is an encoded
 * RateLimitResponse. `waiter` says who: requests that take long, of all that nothing is known of, wait for each other.
 */
export type Decide = (
  message: Uint8Array,
  patienceMicros: number,
  waiter?: Pick<Caller, 'connection' | 'cancelled'>,
) => Uint8Array | Refusal | Promise<Uint8Array | Refusal>;

export interface JsonEndpointOptions {
  readonly codec: JsonCodec;
  readonly decide: Decide;
  readonly maxBodyBytes: number;
}

function patienceOf(header: string | readonly string[] | undefined): number {
  return typeof header === 'string' ? timeoutMicros(header) : Number.POSITIVE_INFINITY;
}

/**
 * `/json`: ShouldRateLimit for callers without gRPC. 200 OK, 429 OVER_LIMIT, 400 what is wrong with the request, 503 no decision could be
 * had; the reason stands in a header. A `grpc-timeout` header says how long the caller waits.
 */
export function jsonEndpoint({ codec, decide, maxBodyBytes }: JsonEndpointOptions): HttpEndpoint {
  return {
    path: '/json',
    help: 'decides a RateLimitRequest: POST, protobuf JSON both ways',
    maxBodyBytes,
    async answer({ body, headers }) {
      const patience = patienceOf(headers['grpc-timeout']);
      if (Number.isNaN(patience))
        return failed(400, 'grpc-timeout must be at most 8 digits and one of H M S m u n');
      let message: Uint8Array;
      try {
        message = codec.requestToWire(body);
      } catch (error) {
        if (error instanceof DecodeError) return failed(400, error.message);
        throw error;
      }
      const decided = await decide(message, patience);
      if (decided instanceof Refusal) {
        if (decided.kind === 'bad_request') return failed(400, decided.message);
        return failed(503, decided.message);
      }
      const { text: answer, overLimit } = codec.responseFromWire(decided);
      return { status: overLimit ? 429 : 200, contentType: 'application/json', body: answer };
    },
  };
}
