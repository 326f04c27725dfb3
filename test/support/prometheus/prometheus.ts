import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';
import { httpRequest } from '../process/http-client.js';
import { startProcess } from '../process/processes.js';
import { TempDir } from '../process/temp-dir.js';
import { toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';

export interface PrometheusOptions {
  /** Debug ports of weir servers on 127.0.0.1. */
  readonly targets: readonly number[];
  /** Interval between scrapes, and between evaluations of the alerts; default `1s`. */
  readonly interval?: string;
  /** Rule files to load. */
  readonly rules?: readonly string[];
}

/** One series of a query result. */
export interface QueriedSeries {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface PrometheusServer {
  readonly port: number;
  /** Resolves with the current result of a query. Rejects with Prometheus's error for an invalid query. */
  query(text: string): Promise<readonly QueriedSeries[]>;
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data: { readonly result: readonly { metric: Record<string, string>; value: [number, string] }[] };
}

/** Starts a real Prometheus on 127.0.0.1 that stores its data in a temporary folder; resolves when it is ready. */
export async function startPrometheus(options: PrometheusOptions): Promise<PrometheusServer> {
  const { targets, interval = '1s', rules = [] } = options;
  const [port = 0] = await freePorts(1);
  const folder = new TempDir();
  const config = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: rules,
    scrape_configs: [
      { job_name: 'weir', static_configs: [{ targets: targets.map((target) => `127.0.0.1:${target}`) }] },
    ],
  };
  const started = startProcess(toolPath('prometheus'), [
    // JSON is YAML.
    `--config.file=${folder.write('prometheus.yaml', JSON.stringify(config))}`,
    `--storage.tsdb.path=${folder.join('data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
  closeLater(started, () => started.stop());
  await waitFor('Prometheus', async () => {
    if (!started.isRunning()) return true;
    return (await httpRequest(port, '/-/ready')).status === 200 || undefined;
  });
  if (!started.isRunning()) throw new Error(`Prometheus ended:\n${started.lines().join('\n')}`);
  return {
    port,
    async query(text) {
      const { body } = await httpRequest(port, `/api/v1/query?query=${encodeURIComponent(text)}`);
      const { status, error, data } = JSON.parse(body) as Answer;
      if (status !== 'success') throw new Error(`${text}: ${error}`);
      return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
  };
}
