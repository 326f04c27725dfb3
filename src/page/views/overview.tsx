import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { HistoryAnswer, Overview as OverviewData } from '../../admin/page/messages.js';
import { poll } from '../ask/client.js';
import { Charts } from '../parts/charts.js';
import { RangeChoice } from '../parts/controls.js';
import { RowLimit, Table } from '../parts/table.js';
import { Fact, Health, LongName, Name, Phase, Relative, Sentence, State, Traffic } from '../parts/texts.js';
import { connection, labelOf, missingNote, now, overview, rates, ratesError } from '../state.js';
import { type DeniedSince, deniedSince } from '../text/denied-since.js';
import { countOf, countText } from '../text/numbers.js';
import { hasTraffic } from '../text/recent-rates.js';
import { ruleKey } from '../text/rule-key.js';
import { visibleText } from '../text/shown-text.js';
import { dateText, spanText } from '../text/times.js';

/** Number of rules that are listed first, and of those whose first denial is shown. */
const FIRST_RULES = 5;
const RULES_WITH_BEGIN = 50;
/** Interval between reads of the first denials, in seconds. */
const SINCE_SECONDS = 14;

/** The state of the server, and its decisions in the last hour. */
export function Overview() {
  const { value: shown } = overview;
  return (
    <>
      <div id="tiles" class="tiles">
        {shown !== undefined && <Tiles {...shown} />}
      </div>
      <section class="card" aria-labelledby="title-traffic">
        <div class="card-head">
          <h3 id="title-traffic">Descriptors per second, all rules</h3>
          <RangeChoice />
        </div>
        <div id="no-traffic">
          <NoTraffic />
        </div>
        <div id="traffic">
          <Charts {...rates.value} series={rates.value.all ?? {}} subject="all rules together" />
        </div>
      </section>
      <section class="card" aria-labelledby="title-worst">
        <h3 id="title-worst">Rules with the most denials</h3>
        <div id="worst">
          <WorstRules />
        </div>
        <p class="row">
          <a href="#top">Show affected callers</a>
          <a href="#rules">All rules</a>
        </p>
      </section>
      <section class="card" aria-labelledby="title-policy">
        <h3 id="title-policy">Policies</h3>
        {shown !== undefined && <Policies {...shown.policy} />}
      </section>
    </>
  );
}

function Tiles({ health, store, policy, workers, now: toldAt, uptime_seconds: uptime }: OverviewData) {
  const down = store.nodes.filter(({ up, of }) => up < of).length;
  const domains = policy.domains.filter(({ phase }) => phase !== undefined).length + policy.more_domains;
  // Without an answer, nobody knows whether the process still runs.
  const shownAt = connection.value.kind === 'lost' ? toldAt : now.value;
  const isServing = ({ status, silent_seconds: silent }: (typeof workers)[number]) =>
    status === 'SERVING' && silent === undefined;
  return (
    <>
      <Tile name="Health" isGood={health.status === 'SERVING'} good="serving" bad="not serving">
        <span id="uptime">
          {health.reason === undefined
            ? `up for ${spanText(Math.max(0, Math.floor(shownAt - toldAt + uptime)))}`
            : visibleText(health.reason)}
        </span>
      </Tile>
      <Tile
        name="Store"
        isGood={store.up && down === 0}
        good="up"
        bad={store.up ? 'partly unavailable' : 'unavailable'}
      >
        <a href="#replicas">
          {store.nodes.length === 0
            ? store.name
            : `${store.nodes.length - down} of ${countOf(store.nodes.length, 'server')} up`}
        </a>
      </Tile>
      <Tile
        name="Policies"
        isGood={policy.reload.result === 'ok'}
        good={domains === 0 ? 'none' : 'valid'}
        bad="errors"
      >
        {countOf(domains, 'domain')}, loaded <Relative at={policy.reload.at} />
      </Tile>
      <Tile
        name="Workers"
        isGood={workers.every(isServing)}
        good={workers.length === 0 ? 'one process' : 'all serving'}
        bad="not all serving"
      >
        <a href="#replicas">
          {workers.length === 0 ? 'WORKERS is 1' : countOf(workers.length, 'process', 'processes')}
        </a>
      </Tile>
    </>
  );
}

interface TileProps {
  readonly name: string;
  readonly isGood: boolean;
  readonly good: string;
  readonly bad: string;
  readonly children: ComponentChildren;
}

function Tile({ name, children, ...state }: TileProps) {
  return (
    <div class="tile">
      <h3 class="note">{name}</h3>
      <p class="tile-state">
        <Health {...state} />
      </p>
      <p class="note">{children}</p>
    </div>
  );
}

function NoTraffic() {
  if (ratesError.value !== undefined)
    return <Sentence text={`The rates could not be loaded: ${ratesError.value}`} />;
  if (rates.value.all === undefined || hasTraffic(rates.value.all)) return null;
  return (
    <p class="empty">
      <strong>No requests in the last hour.</strong> Envoy calls weir over gRPC. To send a test request, see
      docs/start.md.
    </p>
  );
}

function WorstRules() {
  const [since, setSince] = useState<ReadonlyMap<string, DeniedSince | undefined>>(new Map());
  const worst = (rates.value.sums ?? []).filter(({ hour }) => hour.denied + hour.would > 0);
  const rules = worst.slice(0, RULES_WITH_BEGIN).map(({ domain, rule }) => ({ domain, rule }));
  const asked = JSON.stringify(rules);
  const period = Math.floor(rates.value.ends / SINCE_SECONDS);
  useEffect(() => {
    if (rules.length === 0) return;
    void poll<HistoryAnswer>('history', { rules }).then((answer) => {
      if (!answer.ok) return;
      const { series = [], step, ends } = answer.body;
      const begins = rules.map(({ domain, rule }, at): [string, DeniedSince | undefined] => [
        ruleKey(domain, rule),
        deniedSince(series[at]?.denied ?? [], step, ends),
      ]);
      setSince(new Map(begins));
    });
  }, [asked, period]);
  const note = missingNote.value;
  return (
    <>
      {note !== undefined && <p class="note">{note}</p>}
      {worst.length === 0 && note === undefined && rates.value.all !== undefined && (
        <p class="note">No rule has denied a request in the last hour.</p>
      )}
      {worst.length > 0 && (
        <RowLimit rows={worst} first={FIRST_RULES}>
          {(shown) => (
            <Table
              caption="Rules with the most denials in the last hour"
              rows={shown}
              columns={[
                { heading: 'Rule', cell: (row) => <Traffic {...labelOf(row)} /> },
                { heading: 'Domain', cell: ({ domain }) => <Name text={domain} /> },
                { heading: 'Denied, last minute', figures: (row) => countText(row.minute.denied) },
                { heading: 'Denied, last hour', figures: (row) => countText(row.hour.denied) },
                { heading: 'Would be denied, last hour', figures: (row) => countText(row.hour.would) },
                { heading: 'Allowed, last hour', figures: (row) => countText(row.hour.ok) },
                {
                  heading: 'Denials began',
                  cell: ({ domain, rule }) => <Since since={since.get(ruleKey(domain, rule))} />,
                },
              ]}
            />
          )}
        </RowLimit>
      )}
    </>
  );
}

function Since({ since }: { readonly since: DeniedSince | undefined }) {
  if (since === undefined) return <>–</>;
  return (
    <>
      {since.orBefore && 'more than '}
      <Relative at={since.at} />
    </>
  );
}

const DOMAIN_STATES = {
  ok: 'in sync',
  kept: 'invalid files; the previous version is in effect',
  absent: 'invalid files; not in effect',
} as const;

function Policies({ version, reload, errors, more_errors, domains, more_domains }: OverviewData['policy']) {
  return (
    <>
      <dl id="policy" class="facts">
        <Fact term="Version">
          <Name text={version} />
        </Fact>
        <Fact term="Last loaded">
          <Relative at={reload.at} /> ({dateText(reload.at)}):{' '}
          <Health isGood={reload.result === 'ok'} good="no errors" bad="errors" />
        </Fact>
      </dl>
      {errors.length > 0 && (
        <div class="problem">
          <h4>Policy errors</h4>
          {errors.map((text) => (
            <Sentence key={text} text={text} />
          ))}
          {more_errors > 0 && (
            <p>{countOf(more_errors, 'more error')} not listed. Run weir check-config to see all errors.</p>
          )}
        </div>
      )}
      <div id="domains">
        {domains.length === 0 ? (
          <NoDomain />
        ) : (
          <Table
            caption="Domains"
            rows={domains}
            columns={[
              { heading: 'Domain', cell: ({ domain }) => <LongName text={domain} /> },
              {
                heading: 'State',
                cell: ({ state }) => (
                  <State kind={state === 'ok' ? 'good' : 'bad'} text={DOMAIN_STATES[state]} />
                ),
              },
              {
                heading: 'Phase',
                cell: ({ phase }) => (phase === undefined ? '–' : <Phase phase={phase} />),
              },
              {
                heading: 'Files',
                cell: ({ files }) =>
                  files.map((file) => (
                    <div key={file}>
                      <Name text={file} />
                    </div>
                  )),
              },
            ]}
          />
        )}
        {more_domains > 0 && <p class="note">{countOf(more_domains, 'more domain')} not listed</p>}
      </div>
    </>
  );
}

/** Explains what to do if there are no domains. */
export function NoDomain() {
  return (
    <p class="empty">
      <strong>No policy is in effect, so weir does not limit any requests.</strong> Add a policy file to{' '}
      <code>CONFIG_PATH</code>. weir loads the file immediately. To create an example, run{' '}
      <code>weir init shop</code>. For the format, see docs/start.md and docs/policy/format.md.
    </p>
  );
}
