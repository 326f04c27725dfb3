import type { OverviewNode, OverviewWorker } from '../../admin/page/messages.js';
import { Table } from '../parts/table.js';
import { Fact, Health, Name, Relative, State } from '../parts/texts.js';
import { overview } from '../state.js';
import { countOf, millisecondsText } from '../text/numbers.js';
import { spanText } from '../text/times.js';

/** The processes of the replica that answers, and the servers of its store. */
export function Replicas() {
  const { value: shown } = overview;
  if (shown === undefined) return null;
  const { version, policy, store, workers } = shown;
  return (
    <>
      <section class="card" aria-labelledby="title-replica">
        <h3 id="title-replica">This replica</h3>
        <dl class="facts">
          <Fact term="Version">{version}</Fact>
          <Fact term="Started">
            <Relative at={shown.now - shown.uptime_seconds} />
          </Fact>
          <Fact term="Policies">
            <Name text={policy.version} />, loaded <Relative at={policy.reload.at} />
          </Fact>
        </dl>
        <div id="workers">
          {workers.length === 0 && (
            <p class="note">WORKERS is 1, so a single process decides all requests.</p>
          )}
          {workers.length > 0 && <Workers workers={workers} />}
        </div>
      </section>
      <section class="card" aria-labelledby="title-store">
        <h3 id="title-store">Store</h3>
        <div id="store">
          <p>
            Buckets are stored in <Name text={store.name} />:{' '}
            <Health isGood={store.up} good="up" bad="unavailable" />
          </p>
          {store.nodes.length === 0 && (
            <p class="note">
              With the memory store, each replica counts separately, and loses its buckets when it exits.
            </p>
          )}
          {store.nodes.length > 0 && <Nodes nodes={store.nodes} />}
        </div>
      </section>
      <section class="card" aria-labelledby="title-others">
        <h3 id="title-others">Other replicas</h3>
        <p>
          Rates, top callers and processes on this page are those of one replica. Buckets in Redis are shared
          by all replicas. To see the callers of all replicas, run <code>weir top --all</code>. Metrics and
          dashboards add up all replicas.
        </p>
      </section>
    </>
  );
}

function Workers({ workers }: { readonly workers: readonly OverviewWorker[] }) {
  return (
    <Table
      caption="Worker processes"
      rows={workers}
      columns={[
        { heading: 'Worker', cell: ({ id }) => id },
        { heading: 'State', cell: (worker) => <WorkerState {...worker} /> },
        {
          heading: 'Store',
          cell: (worker) => <Health isGood={worker.store_up} good="up" bad="unavailable" />,
        },
        { heading: 'Process', figures: ({ pid }) => pid },
      ]}
    />
  );
}

function WorkerState({ status, silent_seconds: silent, policy }: OverviewWorker) {
  if (silent !== undefined) return <State kind="bad" text={`has not answered for ${spanText(silent)}`} />;
  if (policy !== undefined) return <State kind="bad" text={`has other policies (${policy})`} />;
  return <Health isGood={status === 'SERVING'} good="serving" bad="not serving" />;
}

function Nodes({ nodes }: { readonly nodes: readonly OverviewNode[] }) {
  return (
    <Table
      caption="Store servers"
      rows={nodes}
      columns={[
        { heading: 'Server', cell: ({ node }) => <Name text={node} /> },
        { heading: 'State', cell: (node) => <Health {...nodeState(node)} /> },
        { heading: 'Latency', figures: latency },
        {
          heading: 'Used for',
          cell: ({ redis }) => (redis === 'main' ? 'all limits' : 'per-second limits'),
        },
      ]}
    />
  );
}

function nodeState({ up, of, reason }: OverviewNode): Parameters<typeof Health>[0] {
  const good = of === 1 ? 'up' : `up for ${up} of ${countOf(of, 'process', 'processes')}`;
  const why = `circuit breaker open${reason === undefined ? '' : `: ${reason}`}`;
  return { isGood: up === of, good, bad: `${up === 0 ? 'unavailable' : good}; ${why}` };
}

/** The latency of an unavailable server is out of date. */
function latency({ up, latency_ms: milliseconds }: OverviewNode): string {
  if (up === 0) return '–';
  return milliseconds === null ? 'no answer yet' : millisecondsText(milliseconds);
}
