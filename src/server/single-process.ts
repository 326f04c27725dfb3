import { type HealthVerdict, redisDetail } from '../admin/health-detail.js';
import { reportTop } from '../admin/top/top-answer.js';
import { type GrpcService, openGrpcService } from './grpc-service.js';
import { statFamilies, statsText } from './metrics/stats-text.js';
import type { HttpPorts, OpenPort, PublicPortOptions } from './ports/http-ports.js';
import type { ServerCore, ServerParts } from './server-core.js';

/** Opens a server in which this process decides all requests. */
export function openSingleProcess(parts: ServerParts): ServerCore {
  const service = openGrpcService(parts, parts.closers);
  const { metrics } = service;
  let http: OpenPort | undefined;
  const health = (): HealthVerdict => healthOf(service);
  return {
    metrics,
    administer: service.administer,
    top: async (ask) => (service.top === undefined ? [] : [reportTop(service.top, ask)]),
    async rates(take) {
      metrics.takeNewDecisions(take);
      return metrics.takeNewFailures();
    },
    failed: new Promise((resolve) => service.onGivenUp(resolve)),
    metricsText: () => metrics.registry.text(),
    statsText: async () => statsText(statFamilies(metrics.reference)),
    health,
    nodes: () => [service.storeNodes()],
    detail: () => ({
      store: service.storeName,
      storeUp: service.storeUp(),
      ...redisDetail(service.storeNodes()),
    }),
    async listen(ports, detail) {
      http = await openJson(service, ports, { health, detail: async () => detail() });
      return { grpc: await service.listen(), http: http.address };
    },
    drain: (why, drainDebug) =>
      service.drain(why, async (graceMs) => {
        await Promise.all([http?.drain(graceMs), drainDebug(graceMs)]);
      }),
  };
}

/** Returns whether this process should get requests. */
export function healthOf({ serving: { reason } }: GrpcService): HealthVerdict {
  return reason === undefined ? { status: 'SERVING' } : { status: 'NOT_SERVING', reason };
}

/** Opens PORT, where `service` also decides requests. Rejects with {@link StartError}. */
export function openJson(
  { decide, metrics }: GrpcService,
  ports: HttpPorts,
  shown: Pick<PublicPortOptions, 'health' | 'detail'>,
): Promise<OpenPort> {
  const calls = {
    ended: (micros: number) => metrics.requestSeconds.observe(micros / 1e6),
    refused: (code: Parameters<typeof metrics.refused>[0]) => metrics.refused(code),
  };
  return ports.openPublic({ ...shown, decide, calls });
}
