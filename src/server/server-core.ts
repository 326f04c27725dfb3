import type { Administer } from '../admin/buckets/bucket-admin.js';
import {
  type CoreHealthDetail,
  type HealthVerdict,
  redisDetail,
  type StoreNode,
} from '../admin/health-detail.js';
import type { CollectRates } from '../admin/page/history-service.js';
import { type RequestTop, reportTop } from '../admin/top/top-answer.js';
import type { LoadingPolicyProvider } from '../config/policy-provider.js';
import type { Clock } from '../limiter/clock.js';
import type { Closers } from '../runtime/closers.js';
import type { LogOutput } from '../telemetry/log-output.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { openGrpcService } from './grpc-service.js';
import { statFamilies, statsText } from './metrics/reference-outputs.js';
import type { HttpPorts, OpenPort } from './ports/http-ports.js';
import type { Settings } from './settings/settings-table.js';
import type { StartError } from './start-error.js';
import type { TlsFiles } from './tls-files.js';

/** Dependencies that a process opens before the part that decides. */
export interface ServerParts {
  readonly settings: Settings;
  readonly version: string;
  /** Whether standard output is a terminal. */
  readonly terminal: boolean;
  /** Script that workers run. */
  readonly entry: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly output: LogOutput;
  readonly policies: LoadingPolicyProvider;
  /** Undefined if gRPC uses plain text. */
  readonly tls: TlsFiles | undefined;
  /** Closes resources in reverse order. */
  readonly closers: Closers;
}

/** Addresses of the ports that decide, as `host:port`. */
export interface ServingAddresses {
  readonly grpc: string;
  readonly http: string;
}

/** The part that decides, behind the debug port of a process: the process itself, or its workers. */
export interface ServerCore {
  readonly metrics: Metrics;
  /** Runs the commands of `/buckets`. */
  readonly administer: Administer;
  /** Collects the most active buckets from all processes that decide. */
  readonly top: RequestTop;
  /** Collects the decisions since the previous call, by rule. Only one consumer may call it. */
  readonly rates: CollectRates;
  /** Resolves if the process cannot continue and must drain. */
  readonly failed: Promise<StartError>;
  /** Metrics of all processes in Prometheus' text format. */
  metricsText(): Promise<Buffer>;
  /** Statistics of all processes, with the reference's names. */
  statsText(): Promise<string>;
  health(): HealthVerdict;
  /** Servers that store buckets, as seen by each process that decides and answers. */
  nodes(): readonly (readonly StoreNode[])[];
  /** This part's fields of `/healthcheck?detail`. */
  detail(): CoreHealthDetail;
  /**
   * Opens the gRPC port and PORT, here with `ports`, or in the workers. `detail` returns the body of
   * `/healthcheck?detail`. Rejects with {@link StartError}.
   */
  listen(ports: HttpPorts, detail: () => string): Promise<ServingAddresses>;
  /**
   * Drains: sets NOT_SERVING, waits for the drain delay, and finishes running calls. `drainDebug` finishes calls of the
   * debug port. `why` is logged.
   */
  drain(why: string, drainDebug: (graceMs: number) => Promise<void>): Promise<void>;
}

/** Opens a server in which this process decides all requests. */
export function openSingleProcess(parts: ServerParts): ServerCore {
  const service = openGrpcService(parts, parts.closers);
  const { metrics } = service;
  let http: OpenPort | undefined;
  const health = (): HealthVerdict => service.serving.verdict;
  return {
    metrics,
    administer: service.administer,
    top: async (ask) => (service.top === undefined ? [] : [reportTop(service.top, ask)]),
    async rates(take) {
      metrics.takeNewDecisions(take);
      return metrics.takeNewFailures();
    },
    failed: new Promise((resolve) => service.store.onGivenUp(resolve)),
    metricsText: () => metrics.registry.text(),
    statsText: async () => statsText(statFamilies(metrics.reference)),
    health,
    nodes: () => [service.store.nodes()],
    detail: () => ({
      store: service.store.name,
      storeUp: service.store.up(),
      ...redisDetail(service.store.nodes()),
    }),
    async listen(ports, detail) {
      http = await ports.openPublic(service, health, async () => detail());
      return { grpc: await service.listen(), http: http.address };
    },
    drain: (why, drainDebug) =>
      service.drain(why, async (graceMs) => {
        await Promise.all([http?.drain(graceMs), drainDebug(graceMs)]);
      }),
  };
}
