/*
 * The cost of a sampled decision log and of traces: bytes of a request → CallInstrumentation → ShouldRateLimit → bytes
 * of the answer. Without log and traces, there is no CallInstrumentation. To run it: `node
 * build/test/bench/micro/log-and-trace.bench.js [part of a name …]`.
 */

import { createClientCodec } from '../../../src/codec/client-codec.js';
import { RequestDecoder } from '../../../src/codec/decode-request.js';
import type { ServerCall } from '../../../src/grpc/grpc-server.js';
import { systemClock } from '../../../src/limiter/clock.js';
import { MatchWork } from '../../../src/policy/match-work.js';
import { Closers } from '../../../src/runtime/closers.js';
import { CallInstrumentation } from '../../../src/server/calls/unary-handler.js';
import { openDecisionLog } from '../../../src/server/decision-log/decision-log.js';
import { LoggedWarnings, UnmatchedWarnings } from '../../../src/server/decision-warnings.js';
import { readSettings } from '../../../src/server/settings/read-settings.js';
import { OtlpTracing } from '../../../src/server/tracing/otlp-tracing.js';
import { ShouldRateLimit } from '../../../src/service/should-rate-limit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { LogOutput } from '../../../src/telemetry/log-output.js';
import { createLogger } from '../../../src/telemetry/logger.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { PLAIN_ANSWERS } from '../../support/policy/plain-answers.js';
import { entries, policyOf } from '../../support/policy/policies.js';
import { type MicroCase, runCases } from './measure.js';

const POLICY = policyOf(`
domain: bench
descriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: 2000000000, fill_interval: 1s } } }]
`);
const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

interface Options {
  /** Share of the decisions that are logged. */
  readonly logged?: number;
  /** Whether the caller's trace is recorded. */
  readonly traced?: boolean;
}

function decision({ logged = 0, traced = false }: Options): MicroCase {
  return () => {
    const store = new MemoryStore({ ...MEMORY, clock: systemClock });
    const metrics = new Metrics({ maxSeries: 10_000, version: 'bench', memoryStats: () => store });
    const log = createLogger({ level: 'info', format: 'json', colour: false });
    const policies = { domains: new Map([['bench', POLICY]]), version: 'bench' };
    const output = new LogOutput({ write: (bytes) => bytes.length });
    const settings = { decisionLogSample: { denied: logged, ok: logged }, decisionLogFile: '' };
    const opened = openDecisionLog({ settings, log, output, worker: undefined }, new Closers());
    const service = new ShouldRateLimit({
      decoder: new RequestDecoder(),
      clock: systemClock,
      store,
      local: store,
      policies: { current: () => policies },
      observer: {
        counts: metrics,
        warnings: new LoggedWarnings(log, new UnmatchedWarnings(log, () => policies)),
      },
      storeTimeoutMicros: 2_000_000,

      maxLimits: 256,
      matchWork: new MatchWork(),
      answers: PLAIN_ANSWERS,
      decisionLog: opened?.log,
    });
    const descriptors = [
      { entries: entries('tenant=acme'), limit: undefined, hitsAddend: undefined, isNegativeHits: false },
    ];
    const message = createClientCodec().encodeRequest({ domain: 'bench', descriptors, hitsAddend: 0 });
    const call: ServerCall = {
      deadlineMicros: Number.POSITIVE_INFINITY,
      receivedMicros: 0,
      cancelled: () => false,
      resetListener: undefined,
      connection: {},
      peer: '127.0.0.1:1',
      requestId: 'bench',
      header: (name) => (name === 'traceparent' ? TRACEPARENT : undefined),
    };
    if (opened === undefined && !traced) return () => void service.handle(message, call);
    const callers = new CallInstrumentation(true, traced ? tracing() : undefined);
    return () => void callers.handle(call, (caller) => service.handle(message, caller));
  };
}

/** Opens tracing without a collector, so that most spans are dropped. */
function tracing(): OtlpTracing {
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'http://127.0.0.1:9';
  const read = readSettings({ TRACING_ENABLED: 'true', TRACING_SERVICE_NAME: 'bench' });
  if (!read.ok) throw new Error(read.errors.join());
  const log = createLogger(
    { level: 'fatal', format: 'json', colour: false },
    new LogOutput({ write: ({ length }) => length }),
  );
  return new OtlpTracing({ settings: read.settings, version: 'bench', log, store: { nodes: () => [] } });
}

runCases(__filename, {
  'decision, no log of it and no trace': decision({}),
  'decision, 1 of 100 is logged': decision({ logged: 0.01 }),
  'decision, each is logged': decision({ logged: 1 }),
  'decision, each is traced': decision({ traced: true }),
});
