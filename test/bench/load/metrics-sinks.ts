import { type AddressInfo, createServer } from 'node:net';
import { freePorts } from '../../support/process/free-port.js';

/**
 * Settings with which a server sends its metrics to statsd each second, and maps them for Prometheus. What they are
 * sent to reads and forgets.
 */
export async function sinkSettings(stops: (() => Promise<unknown>)[]): Promise<NodeJS.ProcessEnv> {
  const statsd = createServer((socket) => socket.on('error', () => {}).resume());
  await new Promise<void>((resolve) => statsd.listen(0, '127.0.0.1', resolve));
  stops.push(async () => statsd.close());
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
