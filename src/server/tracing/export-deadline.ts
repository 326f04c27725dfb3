import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { getNumberFromEnv } from '@opentelemetry/core';
import { boundRequest } from '../../bounded-request.js';

/** Default of OTEL_EXPORTER_OTLP_TIMEOUT, milliseconds. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** Begins the user agent of OpenTelemetry's exporters. */
const EXPORTER = 'OTel-OTLP-Exporter-JavaScript/';

/**
 * Gives each export over HTTP one deadline, its retries included: the exporter's own timeout begins anew with each byte
 * of the collector. Returns what is to be called when an export begins; one follows the other, but at the end of the
 * process. The exporter hands its requests to nobody: Node.js tells of them.
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
 * Leaves out a `Retry-After` that asks for no pause: the exporter makes a timer of it as it is, also of a negative one,
 * of which Node.js prints a warning. Without the header the exporter waits as long as it thinks fit.
 */
function dropInvalidRetryAfter({ headers }: IncomingMessage): void {
  const told = headers['retry-after'] ?? '';
  const seconds = Number.parseInt(told, 10);
  const isPause = Number.isNaN(seconds) ? Date.parse(told) > Date.now() : seconds > 0;
  if (!isPause) delete headers['retry-after'];
}

/** Between two exports a collector has nothing to say: what it sent nevertheless would be read without an end. */
function guardIdleConnection(request: ClientRequest): void {
  if (request.socket) request.socket.off('data', destroy);
  else request.once('socket', (socket) => socket.off('data', destroy));
  request.once('close', () => request.socket?.on('data', destroy));
}

function destroy(this: Socket): void {
  this.destroy();
}

/** The timeout that the exporter reads, too. */
function exportTimeoutMs(): number {
  const told = ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'OTEL_EXPORTER_OTLP_TIMEOUT'].map(getNumberFromEnv);
  return told.find((ms) => ms !== undefined && ms > 0 && Number.isFinite(ms)) ?? DEFAULT_TIMEOUT_MS;
}
