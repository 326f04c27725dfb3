import { type HealthVerdict, redisDetail } from '../admin/health-detail.js';
import { reportTop } from '../admin/top/top-request.js';
import { openGrpcService } from './grpc-service.js';
import { statFamilies, statsText } from './metrics/stats-text.js';
import type { ServerCore, ServerParts } from './server-core.js';

/** Opens a server in which this process decides all requests. */
export function openSingleProcess(parts: ServerParts): ServerCore {
  const service = openGrpcService(parts, parts.closers);
  const { metrics, decide } = service;
  return {
    metrics,
    decide,
    administer: service.administer,
    top: async (ask) => (service.top === undefined ? [] : [reportTop(service.top, ask)]),
    async rates(take) {
      metrics.takeNewDecisions(take);
      return metrics.takeNewFailures();
    },
    failed: new Promise((resolve) => service.onGivenUp(resolve)),
    metricsText: () => metrics.registry.text(),
    statsText: async () => statsText(statFamilies(metrics.reference)),
    health(): HealthVerdict {
      const { reason } = service.serving;
      return reason === undefined ? { status: 'SERVING' } : { status: 'NOT_SERVING', reason };
    },
    nodes: () => [service.storeNodes()],
    detail: () => ({
      store: service.storeName,
      storeUp: service.storeUp(),
      ...redisDetail(service.storeNodes()),
    }),
    listen: () => service.listen(),
    drain: (why, drainHttp) => service.drain(why, drainHttp),
  };
}
