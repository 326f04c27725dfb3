import { isNodeOlderThan } from '../node-version.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';

/** Throws {@link StartError} if the settings do not allow several workers. */
export function checkWorkers(settings: Settings): void {
  if (settings.workers === 1) return;
  if (settings.redisUrl === '') {
    throw new StartError([
      `WORKERS: ${settings.workers} workers need Redis: with buckets in memory, each worker would count ` +
        'separately, so callers would get every limit several times; set REDIS_URL, or set WORKERS=1',
    ]);
  }
  if (settings.workerScheduling !== 'reuse-port') return;
  if (isNodeOlderThan(22, 12)) {
    throw new StartError([
      'WORKER_SCHEDULING: reuse-port needs Node.js 22.12 or later, but this is Node.js ' +
        `${process.versions.node}; upgrade Node.js, or set WORKER_SCHEDULING=round-robin`,
    ]);
  }
  if (settings.grpcPort === 0) {
    throw new StartError([
      'WORKER_SCHEDULING: reuse-port needs a fixed port, because with GRPC_PORT=0 each worker would get ' +
        'a different port; set GRPC_PORT',
    ]);
  }
}
