/*
 * `npm run demo -- --watch`: the demo with a steady load that exceeds a limit, and a Prometheus with the alerts of
 * deploy/prometheus. Prints where to look, and runs until Ctrl-C.
 */
import { join } from 'node:path';
import { type Stack, startStack } from '../../test/support/envoy/stack.js';
import { closeAll, closeLater } from '../../test/support/process/close-later.js';
import { httpRequest } from '../../test/support/process/http-client.js';
import { fetchTools, optionalToolPath, repositoryRoot } from '../../test/support/process/tools.js';
import { waitFor } from '../../test/support/process/wait-for.js';
import { DASHBOARDS } from '../../test/support/prometheus/dashboard.js';
import { type PrometheusServer, startPrometheus } from '../../test/support/prometheus/prometheus.js';
import { RULES } from '../../test/support/prometheus/rule-tests.js';

/** Query that the link to Prometheus contains. */
const QUERY = 'sum by (rule, code) (rate(weir_decisions_total[30s]))';
const CHATS = '/open/v5/user-chats';
const OTHER = '/open/v5/groups';

/** Calls in each tenth of a second: acme sends three times the rate of its limit, and the others less. */
const CALLERS = [
  { tenant: 'acme', path: CHATS, calls: 3, every: 1 },
  { tenant: 'globex', path: CHATS, calls: 1, every: 2 },
  { tenant: 'initech', path: OTHER, calls: 1, every: 1 },
] as const;
const TICK_MS = 100;

/** Sends requests to Envoy until {@link closeAll}. Ignores errors, because Envoy may be stopping. */
function startLoad(port: number): void {
  const underWay = new Set<Promise<unknown>>();
  let ticks = 0;
  const timer = setInterval(() => {
    ticks++;
    for (const { tenant, path, calls, every } of CALLERS) {
      if (ticks % every !== 0) continue;
      for (let call = 0; call < calls; call++) {
        const answer = httpRequest(port, path, { headers: { 'x-tenant': tenant } }).catch(() => {});
        underWay.add(answer);
        void answer.then(() => underWay.delete(answer));
      }
    }
  }, TICK_MS);
  closeLater(timer, async () => {
    clearInterval(timer);
    await Promise.all(underWay);
  });
}

/** Returns the address of the query page of Prometheus, which differs in the package of Debian. */
async function graphPage(port: number): Promise<string> {
  const { status } = await httpRequest(port, '/classic/graph');
  return `http://127.0.0.1:${port}${status === 200 ? '/classic' : ''}/graph`;
}

async function whereToLook({ weir, envoy }: Stack, prometheus: PrometheusServer): Promise<string> {
  const graph = await graphPage(prometheus.port);
  return `weir decides about 45 requests a second, and denies about 20 of them:

  decisions, by rule and code   ${graph}?g0.expr=${encodeURIComponent(QUERY)}&g0.tab=0&g0.range_input=5m
  alerts                        ${graph.replace(/graph$/, 'alerts')}
                                see "Alerts" in ${join(repositoryRoot, 'docs/README.md')}
  the dashboard                 import ${join(DASHBOARDS, 'weir.json')} into a Grafana server
                                that has the data source http://127.0.0.1:${prometheus.port}
  weir's page                   http://127.0.0.1:${weir.debugPort}/
  most denied callers           node ${join(repositoryRoot, 'build/src/main.js')} top --address 127.0.0.1:${weir.debugPort}
  send a request                curl -i -H 'x-tenant: you' http://127.0.0.1:${envoy.port}${CHATS}

Press Ctrl-C to stop everything.`;
}

/**
 * Starts weir, Envoy, an upstream, a Prometheus and the load, prints where to look, and stops everything when
 * `stopping` is aborted. Rejects if a process cannot be started.
 */
export async function watch(stopping: AbortSignal): Promise<void> {
  if (optionalToolPath('prometheus') === undefined) fetchTools(['prometheus']);
  try {
    const stack = await startStack({ weirEnv: { BUCKET_USED_RATIO_TOP: '10' } });
    const prometheus = await startPrometheus({ targets: [stack.weir.httpPort], rules: [RULES] });
    startLoad(stack.envoy.port);
    // Wait for data, so that the first query shows a chart.
    await waitFor('the first metrics from Prometheus', async () => {
      return stopping.aborted || (await prometheus.query(QUERY)).length > 0 || undefined;
    });
    if (!stopping.aborted) console.log(await whereToLook(stack, prometheus));
    await new Promise<void>((resolve) => {
      if (stopping.aborted) resolve();
      else stopping.addEventListener('abort', () => resolve(), { once: true });
    });
  } finally {
    await closeAll();
  }
}
