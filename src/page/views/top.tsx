import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { TopAnswer, TopBucket } from '../../admin/buckets/messages.js';
import { poll } from '../ask/client.js';
import { Button, domainOptions, SelectField } from '../parts/controls.js';
import { RowLimit, Table } from '../parts/table.js';
import { Entries, Name, Sentence, Spoken, Traffic } from '../parts/texts.js';
import { connections, labelOf, overview } from '../state.js';
import { noLookupReason } from '../text/entry-lines.js';
import { countText, shareText } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';
import { spanText } from '../text/times.js';
import { openBucket } from './bucket.js';

/** Refresh interval, in milliseconds. */
const REFRESH_MS = 5000;
const ROWS = 50;
const FIRST_ROWS = 10;
const UNRECORDED =
  'TOP_BUCKETS is 0, so weir does not record which callers are denied most often. To record these callers, ' +
  'set TOP_BUCKETS, for example to 500.';

const by = signal('denied');
const of = signal('minute');
const domain = signal('');

/** The buckets that are denied or used most. */
export function Top() {
  const [shown, setShown] = useState<TopAnswer & { readonly choice: string }>();
  const [error, setError] = useState<string>();
  const isRecorded = overview.value?.keeps.top !== 0;
  const question = JSON.stringify({
    ...{ by: by.value, of: of.value, limit: ROWS },
    ...(domain.value !== '' && { domain: domain.value }),
  });
  const { value: session } = connections;
  useEffect(() => {
    if (!isRecorded) return;
    let [isCurrent, isAsking] = [true, false];
    const refresh = async () => {
      // A second question would discard the pending answer, so a slow server would never be heard.
      if (isAsking) return;
      isAsking = true;
      const answer = await poll<TopAnswer>('top', JSON.parse(question) as object);
      isAsking = false;
      if (!isCurrent) return;
      setError(answer.ok ? undefined : answer.error);
      if (answer.ok) setShown({ ...answer.body, choice: question });
    };
    const timer = setInterval(() => {
      if (!document.hidden) void refresh();
    }, REFRESH_MS);
    void refresh();
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [question, session, isRecorded]);
  const options = (...words: readonly string[]) => words.map((word) => [word, word] as const);
  const isLoading = shown?.choice !== question && error === undefined && isRecorded;
  return (
    <>
      <div class="controls">
        <SelectField id="top-by" label="Sort by" chosen={by} options={options('denied', 'used')} />
        <SelectField id="top-of" label="In the last" chosen={of} options={options('minute', 'hour')} />
        <SelectField
          id="top-domain"
          label="Domain"
          chosen={domain}
          options={[['', 'all domains'], ...domainOptions(domain.value)]}
        />
        <p id="top-about" class="note">
          {isLoading ? 'Loading…' : shown !== undefined && aboutWords(shown)}
        </p>
      </div>
      <div id="top-failed">
        {(!isRecorded || error !== undefined) && <Sentence text={error ?? UNRECORDED} />}
      </div>
      {shown !== undefined && isRecorded && (
        <div id="top-rows" class="card">
          <Rows key={shown.choice} {...shown} />
        </div>
      )}
    </>
  );
}

function aboutWords({ covers, sampled, error }: TopAnswer): string {
  const isExact = error.denied === 0 && error.used === 0 && sampled <= 1;
  const sample = ` weir counted a sample of 1 in ${countText(Math.round(sampled))} decisions.`;
  return `${isExact ? 'Exact numbers' : 'Estimates'} for the last ${spanText(covers)}.${sampled > 1 ? sample : ''}`;
}

function Rows({ top, by: measure, of: span }: TopAnswer) {
  const isDenied = measure === 'denied';
  const isEmpty = top.length === 0 || (isDenied && top.every(({ denied }) => denied === 0));
  return (
    <>
      {isEmpty && (
        <p class="empty">
          No caller {isDenied ? 'was denied' : 'sent a request that matched a limit'} in the last {span}.
        </p>
      )}
      {top.length > 0 && (
        <RowLimit rows={top} first={FIRST_ROWS}>
          {(rows) => (
            <Table
              caption={`${isDenied ? 'Buckets with the most denials' : 'Most used buckets'} in the last ${span}`}
              captionShown
              rows={rows}
              keyOf={({ domain: of, rule, limit, entries }) => JSON.stringify([of, rule, limit, entries])}
              columns={[
                { heading: 'Entries', cell: ({ entries }) => <Entries entries={entries} /> },
                { heading: 'Denied', figures: (row) => estimate(row.denied, row.denied_error) },
                { heading: 'Used', figures: (row) => estimate(row.used, row.used_error) },
                { heading: 'Share of limit', figures: ({ used_ratio }) => shareText(used_ratio) },
                { heading: 'Rule', cell: (row) => <RuleCell {...row} /> },
                { heading: 'Domain', cell: (row) => <Name text={row.domain} /> },
                { heading: 'Bucket', cell: (row) => <BucketLink {...row} /> },
              ]}
            />
          )}
        </RowLimit>
      )}
    </>
  );
}

function RuleCell(row: TopBucket) {
  if (row.limit !== undefined)
    return (
      <>
        <em>override:</em> <Name text={row.limit} />
      </>
    );
  return (
    <>
      <Traffic {...labelOf(row)} />
      {row.plan !== undefined && ` plan ${briefText(row.plan)}`}
    </>
  );
}

function BucketLink({ domain: ofDomain, entries, limit }: TopBucket) {
  const why = noLookupReason(entries);
  if (why !== undefined) return <span class="note">{why}</span>;
  const named = briefText(entries.map(({ key, value }) => `${key}=${value}`).join(' '));
  return (
    <Button onClick={() => openBucket(ofDomain, entries, limit)}>
      Show<Spoken> the bucket of {named}</Spoken>
    </Button>
  );
}

/** Shows a number that may be too high by `error`. */
function estimate(count: number, error: number): string {
  return error > 0 ? `${countText(Math.max(0, count - error))} – ${countText(count)}` : countText(count);
}
