import { type AddressInfo, createServer } from 'node:net';
import { closeLater } from '../../support/process/close-later.js';
import { freePorts } from '../../support/process/free-port.js';

/**
 * Returns variables with which weir sends its metrics to statsd every second, and maps them for Prometheus. The
 * receiver discards all data.
 */
export async function metricsSinkSettings(): Promise<NodeJS.ProcessEnv> {
  const statsd = createServer((socket) => socket.on('error', () => {}).resume());
  await new Promise<void>((resolve) => statsd.listen(0, '127.0.0.1', resolve));
  closeLater(statsd, () => statsd.close());
  const [prometheusPort = 0] = await freePorts(1);
  return {
    USE_STATSD: 'true',
    STATSD_HOST: '127.0.0.1',
    STATSD_PORT: String((statsd.address() as AddressInfo).port),
    STATS_FLUSH_INTERVAL: '1s',
    USE_PROMETHEUS: 'true',
    PROMETHEUS_ADDR: `127.0.0.1:${prometheusPort}`,
  };
}
