import type { AdminService } from '../admin/admin-endpoint.js';
import type { HealthDetail } from '../admin/health-detail.js';
import { historyService, lastPoint } from '../admin/page/history-service.js';
import { openHistory } from '../admin/page/open-history.js';
import { OverviewBuilder } from '../admin/page/overview.js';
import { OverviewService } from '../admin/page/overview-service.js';
import type { ServerCore, ServerParts } from './server-core.js';

/** What the page of the debug port asks for beside what `/buckets` and `/top` answer. */
export interface PageServices {
  readonly services: readonly AdminService[];
  /** A drain that first ends the events which pages read. */
  closeBeforeDrain(drain: (graceMs: number) => Promise<void>): (graceMs: number) => Promise<void>;
}

/** Counts what `core` decides, step by step, and tells of it and of how the server stands. */
export function openPage(
  { nodes, rates }: Pick<ServerCore, 'nodes' | 'rates'>,
  { settings, clock, policies, slices, log, closers }: ServerParts,
  detail: () => HealthDetail,
): PageServices {
  const onError = (error: unknown): void => log.error({ err: error }, 'unexpected error');
  const followed = openHistory(settings.historyRules, clock, rates, onError, closers);
  const keeps = { top: settings.topBuckets, history: settings.historyRules };
  const builder = new OverviewBuilder({ clock, policies, keeps, detail, nodes });
  const overview = new OverviewService({
    slices,
    tell: () => builder.tell(),
    point: () => lastPoint({ followed, clock }),
    onStep: (listener) => followed.onStep(listener),
    onError,
  });
  return {
    services: [overview, historyService({ followed, clock, slices })],
    closeBeforeDrain: (drain) => (graceMs) => {
      overview.close();
      return drain(graceMs);
    },
  };
}
