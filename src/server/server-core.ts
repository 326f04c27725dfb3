import type { Administer } from '../admin/buckets/buckets-service.js';
import type { CoreHealthDetail, HealthVerdict, StoreNode } from '../admin/health-detail.js';
import type { AskRates } from '../admin/page/open-history.js';
import type { AskTop } from '../admin/top/top-ask.js';
import type { LoadingPolicyProvider } from '../config/policy-provider.js';
import type { ViewSlices, ViewSteps } from '../http/views/view-slices.js';
import type { Clock } from '../limiter/clock.js';
import type { Closers } from '../runtime/closers.js';
import type { TurnQueue } from '../service/turn-queue.js';
import type { LogOutput } from '../telemetry/log-output.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Decide } from './ports/json-endpoint.js';
import type { Settings } from './settings/settings-table.js';
import type { StartError } from './start-error.js';
import type { TlsFiles } from './tls-files.js';

/** What a process has before anything decides. */
export interface ServerParts {
  readonly settings: Settings;
  readonly version: string;
  /** Whether standard output is a terminal. */
  readonly terminal: boolean;
  /** The script this process runs, for worker processes. */
  readonly entry: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where `log` goes. */
  readonly output: LogOutput;
  readonly policies: LoadingPolicyProvider;
  /** Undefined: gRPC in clear text. */
  readonly tls: TlsFiles | undefined;
  /** Where views and statistics are made. */
  readonly slices: ViewSlices;
  /** Where what must be closed goes. */
  readonly closers: Closers;
}

/** What decides, behind the HTTP ports of a process: the process itself, or its workers. */
export interface ServerCore {
  /** Of this process. */
  readonly metrics: Metrics;
  /** Where what is long has its turns in this process. */
  readonly turns: TurnQueue;
  /** For callers that do not come by gRPC. */
  readonly decide: Decide;
  /** Answers what those who administer weir ask of `/buckets`. */
  readonly administer: Administer;
  /** What all processes that decide tell of the buckets that they count most of. */
  readonly top: AskTop;
  /** Tells what was decided since this was asked last, by rule; for one asker. */
  readonly rates: AskRates;
  /** Resolves if it cannot go on; it must be drained then. */
  readonly failed: Promise<StartError>;
  /** Metrics of all processes in Prometheus' text format. */
  metricsText(): ViewSteps<string, void>;
  /** Statistics of all processes under the reference's names. */
  statsText(): ViewSteps<string, void>;
  health(): HealthVerdict;
  /** The servers that buckets lie on, as each process that decides and answers sees them. */
  nodes(): readonly (readonly StoreNode[])[];
  /** The part of `/healthcheck?detail` that it knows. */
  detail(): CoreHealthDetail;
  /** Opens the gRPC port; resolves with its address as `host:port`, rejects with {@link StartError}. */
  listen(): Promise<string>;
  /**
   * NOT_SERVING, drain delay, running calls. `drainHttp` waits for calls that do not come by gRPC. `why` goes to the log.
   */
  drain(why: string, drainHttp: (graceMs: number) => Promise<void>): Promise<void>;
}
