import { type HealthVerdict, redisDetail } from '../admin/health-detail.js';
import { reportTop } from '../admin/top/top-answer.js';
import { openGrpcService } from './grpc-service.js';
import { statFamilies, statsText } from './metrics/reference-outputs.js';
import type { OpenPort } from './ports/http-ports.js';
import type { ServerCore, ServerParts } from './server-core.js';

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
