import { type HealthVerdict, redisDetail } from '../admin/health-detail.js';
import { topSteps } from '../admin/top/top-request.js';
import type { RateCounts } from '../telemetry/history/rate-counts.js';
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
    top: async (ask) =>
      service.top === undefined ? [] : [await parts.slices.run(topSteps(service.top, ask))],
    async rates(take) {
      await parts.slices.run<RateCounts, void>(metrics.takeNewDecisions(), take);
      return metrics.takeNewFailures();
    },
    failed: new Promise((resolve) => service.onGivenUp(resolve)),
    metricsText: () => metrics.registry.text(),
    statsText: () => statsText(statFamilies(metrics.reference)),
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
