import type { AdminService } from '../admin/admin-endpoint.js';
import type { HealthDetail } from '../admin/health-detail.js';
import { historyService, lastPoint } from '../admin/page/history-service.js';
import { OverviewBuilder } from '../admin/page/overview.js';
import { OverviewService } from '../admin/page/overview-service.js';
import { recordHistory } from '../admin/page/record-history.js';
import type { ServerCore, ServerParts } from './server-core.js';

/** Endpoints of the page on the debug port, other than `/buckets` and `/top`. */
export interface PageServices {
  readonly services: readonly AdminService[];
  /** Returns a drain that ends the event streams of pages before it calls `drain`. */
  closeBeforeDrain(drain: (graceMs: number) => Promise<void>): (graceMs: number) => Promise<void>;
}

/** Records the decisions of `core` in steps, and opens the endpoints that show them and the state of the server. */
export function openPage(
  { nodes, rates }: Pick<ServerCore, 'nodes' | 'rates'>,
  { settings, clock, policies, log, closers }: ServerParts,
  detail: () => HealthDetail,
): PageServices {
  const onError = (error: unknown): void => log.error({ err: error }, 'unexpected error');
  const recorded = recordHistory(settings.historyRules, clock, rates, onError, closers);
  const keeps = { top: settings.topBuckets, history: settings.historyRules };
  const builder = new OverviewBuilder({ clock, policies, keeps, detail, nodes });
  const overview = new OverviewService({
    tell: () => builder.tell(),
    point: () => lastPoint({ recorded, clock }),
    onStep: (listener) => recorded.onStep(listener),
  });
  return {
    services: [overview, historyService({ recorded, clock })],
    closeBeforeDrain: (drain) => (graceMs) => {
      overview.close();
      return drain(graceMs);
    },
  };
}
