import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { getNumberFromEnv } from '@opentelemetry/core';
import { boundRequest } from '../../bounded-request.js';

/** Default of OTEL_EXPORTER_OTLP_TIMEOUT, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** Prefix of the user agent of OpenTelemetry's exporters. */
const EXPORTER = 'OTel-OTLP-Exporter-JavaScript/';

/**
 * Gives each HTTP export one deadline that includes its retries, because the exporter's own timeout restarts with each
 * byte that the collector sends. Returns a function to call when an export starts; exports run one after the other,
 * except when the process exits. The exporter does not expose its requests, so a diagnostics channel of Node.js reports
 * them.
 */
export function limitHttpExports(): () => void {
  const timeoutMs = exportTimeoutMs();
  let endsMs = 0;
  subscribe('http.client.request.start', (message) => {
    const { request } = message as { readonly request: ClientRequest };
    if (!String(request.getHeader('user-agent')).startsWith(EXPORTER)) return;
    boundRequest(request, Math.max(0, endsMs - performance.now()));
    request.once('response', dropInvalidRetryAfter);
    guardIdleConnection(request);
  });
  return () => {
    endsMs = performance.now() + timeoutMs;
  };
}

/**
 * Removes a `Retry-After` header that is not a positive pause. The exporter passes the value to a timer, and Node.js
 * prints a warning if it is negative. Without the header, the exporter uses its own pause.
 */
function dropInvalidRetryAfter({ headers }: IncomingMessage): void {
  const told = headers['retry-after'] ?? '';
  const seconds = Number.parseInt(told, 10);
  const isPause = Number.isNaN(seconds) ? Date.parse(told) > Date.now() : seconds > 0;
  if (!isPause) delete headers['retry-after'];
}

/**
 * Destroys an idle connection if the collector sends data between two exports, because reading it would have no limit.
 */
function guardIdleConnection(request: ClientRequest): void {
  if (request.socket) request.socket.off('data', destroy);
  else request.once('socket', (socket) => socket.off('data', destroy));
  request.once('close', () => request.socket?.on('data', destroy));
}

function destroy(this: Socket): void {
  this.destroy();
}

/** Returns the timeout that the exporter reads, too. */
function exportTimeoutMs(): number {
  const told = ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'OTEL_EXPORTER_OTLP_TIMEOUT'].map(getNumberFromEnv);
  return told.find((ms) => ms !== undefined && ms > 0 && Number.isFinite(ms)) ?? DEFAULT_TIMEOUT_MS;
}
