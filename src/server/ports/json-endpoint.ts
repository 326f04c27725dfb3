import { requestFromJson, responseToJson } from '../../codec/json-messages.js';
import {
  CODE,
  DecodeError,
  type RateLimitRequest,
  type RateLimitResponse,
  type RequestBounds,
} from '../../codec/messages.js';
import { timeoutMicros } from '../../grpc/timeout-header.js';
import { crossSiteReason, dnsRebindingReason, isBrowserRequest } from '../../http/cross-site.js';
import { failed, type HttpAnswer, type HttpCall, type HttpEndpoint } from '../../http/http.js';
import type { Caller } from '../../service/caller.js';
import { Refusal } from '../../service/refusal.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { CallHeaders } from '../calls/call-trace.js';

/** Decides a request. `timeoutMicros` is the caller's timeout, or Infinity. */
export type Decide = (
  request: RateLimitRequest,
  timeoutMicros: number,
  caller: Pick<Caller, 'connection' | 'cancelled'> & { readonly headers?: CallHeaders | undefined },
) => RateLimitResponse | Refusal | Promise<RateLimitResponse | Refusal>;

export interface JsonEndpointOptions {
  readonly decide: Decide;
  readonly bounds: RequestBounds;
  /** Whether only this machine can reach the port. */
  readonly isOnLoopback: boolean;
  /** Count the calls, with the time from the complete body to the answer, and the statuses that gRPC would return. */
  readonly metrics: {
    readonly requestSeconds: Pick<Metrics['requestSeconds'], 'observe'>;
    readonly refused: Metrics['refused'];
  };
  monotonicMicros(): number;
}

/** Schemes that browsers may use: a proxy in front of weir may terminate TLS. */
const SCHEMES = ['http', 'https'];

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
  const { decide, bounds, isOnLoopback, metrics } = options;
  const badRequest = (reason: string): HttpAnswer => {
    metrics.refused('INVALID_ARGUMENT');
    return failed(400, reason);
  };
  const unavailable = (reason: string): HttpAnswer => {
    metrics.refused('UNAVAILABLE');
    return failed(503, reason);
  };
  const answerAt = async (call: HttpCall, startMicros: number): Promise<HttpAnswer> => {
    const timeout = readTimeoutMicros(call.headers['grpc-timeout']);
    if (Number.isNaN(timeout)) {
      return badRequest('grpc-timeout must be 1 to 8 digits followed by H, M, S, m, u or n');
    }
    let request: RateLimitRequest;
    try {
      request = requestFromJson(call.body, bounds);
    } catch (error) {
      if (error instanceof DecodeError) return badRequest(error.message);
      throw error;
    }
    const leftMicros = startMicros + timeout - options.monotonicMicros();
    const { connection, isCancelled: cancelled, headers } = call;
    const decided = await decide(request, leftMicros, { connection, cancelled, headers });
    if (decided instanceof Refusal) {
      return decided.kind === 'bad_request' ? badRequest(decided.message) : unavailable(decided.message);
    }
    const status = decided.overallCode === CODE.OVER_LIMIT ? 429 : 200;
    return { status, contentType: 'application/json', body: responseToJson(decided) };
  };
  return {
    path: '/json',
    help: 'POST: decides a RateLimitRequest; the request and response bodies are protobuf JSON',
    maxBodyBytes: bounds.maxBytes,
    bodySetting: 'MAX_REQUEST_BYTES',
    refuse({ headers }) {
      const site = crossSiteReason(headers, SCHEMES);
      const name = isOnLoopback && isBrowserRequest(headers) ? dnsRebindingReason(headers) : undefined;
      const fault = site ?? name;
      if (fault === undefined) return undefined;
      metrics.refused('PERMISSION_DENIED');
      return failed(site === undefined ? 421 : 403, fault);
    },
    async answer(call) {
      const startMicros = options.monotonicMicros();
      const answer = await answerAt(call, startMicros);
      metrics.requestSeconds.observe((options.monotonicMicros() - startMicros) / 1e6);
      return answer;
    },
  };
}
