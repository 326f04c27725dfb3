import type { BucketAnswer, BucketLevel, ShownBucket, ShownHolds } from '../../admin/buckets/messages.js';
import { Button } from '../parts/controls.js';
import { Table, type TableColumn } from '../parts/table.js';
import { Entries, LongName, Name, Relative, Sentence, Spoken, State } from '../parts/texts.js';
import { noChangeReason, now } from '../state.js';
import { countText } from '../text/numbers.js';
import { ENFORCED } from '../text/phases.js';
import { visibleText } from '../text/shown-text.js';
import { relativeText, spanText } from '../text/times.js';

interface LimitsProps {
  readonly answer: BucketAnswer;
  /** Starts the release of a hold. Without it, holds have no button. */
  readonly release?: (hold: string) => void;
}

const COLUMNS: readonly TableColumn<ShownBucket>[] = [
  { heading: 'Rule', cell: (bucket) => <RuleName {...bucket} /> },
  { heading: 'Remaining', figures: (bucket) => <Remaining {...bucket} /> },
  { heading: 'Limit', figures: ({ limit }) => countText(limit) },
  { heading: 'Debt', figures: (bucket) => <Changed {...bucket} measure="debt" /> },
  { heading: 'Next token in', figures: (bucket) => timeUntil(bucket, 'next_token_in') },
  { heading: 'Full in', figures: (bucket) => timeUntil(bucket, 'full_in') },
  { heading: 'Enforced', cell: ({ enforcement }) => <Enforced enforcement={enforcement} /> },
];

/** The limits of an answer as a table, and its notes. */
export function Limits({ answer: { buckets, more, meets, notes, entries }, release }: LimitsProps) {
  return (
    <>
      {buckets.length > 0 && (
        <Table
          caption={
            meets === 'part'
              ? 'Limits that could apply to descriptors with these entries'
              : 'Limits that this request matches'
          }
          captionShown
          columns={COLUMNS}
          rows={buckets}
          below={(bucket) => <Details bucket={bucket} entries={entries} release={release} />}
        />
      )}
      {more > 0 && (
        <p class="note">Limits not listed: {countText(more)}. To see these limits, enter more entries.</p>
      )}
      {meets === 'nothing' && notes.length === 0 && (
        <p>
          No limit matches these entries or any descriptor that contains these entries. To find the reason,
          run <code>weir explain</code>.
        </p>
      )}
      {notes.map((note) => (
        <Sentence key={note} text={note} />
      ))}
    </>
  );
}

/** A bucket of an override is named so. A rule of a policy may have the same name. */
function RuleName({ rule, name }: ShownBucket) {
  if (rule === 'override') return <em>override: the limit in the request</em>;
  return (
    <>
      <Name text={rule} /> {name !== '' && <Name text={name} />}
    </>
  );
}

/** The remaining tokens. Screen readers do not read the bar, because the numbers say the same. */
function Remaining(bucket: ShownBucket) {
  const { now: level, limit } = bucket;
  const share = Math.max(0, Math.min(1, (level?.left ?? 0) / limit));
  return (
    <>
      <Changed {...bucket} measure="left" />
      {level !== undefined && limit > 0 && (
        <svg class={share < 0.1 ? 'bar low' : 'bar'} aria-hidden="true">
          <rect width={`${Math.round(share * 100)}%`} height="100%" />
        </svg>
      )}
    </>
  );
}

/** The previous value, and the value after the action. */
function Changed({ before, now: after, measure }: ShownBucket & { readonly measure: 'left' | 'debt' }) {
  const [was, is] = [before?.[measure], after?.[measure]];
  if (was === undefined || is === undefined || was === is) {
    const known = is ?? was;
    return <>{known === undefined ? '?' : countText(known)}</>;
  }
  return (
    <>
      {countText(was)}
      <Spoken> before, </Spoken>
      <span aria-hidden="true"> → </span>
      <strong>{countText(is)}</strong>
      <Spoken> afterwards</Spoken>
    </>
  );
}

/** A limit that allows no requests never has a token. */
function timeUntil({ now: level, limit }: ShownBucket, what: keyof BucketLevel): string {
  if (level === undefined) return '?';
  const seconds = limit === 0 ? null : level[what];
  return seconds == null ? '–' : spanText(seconds);
}

function Enforced({ enforcement }: Pick<ShownBucket, 'enforcement'>) {
  const text = ENFORCED.get(enforcement) ?? visibleText(enforcement);
  return <State kind={enforcement === 'observe' ? 'watch' : 'good'} text={text} />;
}

interface DetailsProps extends Pick<BucketAnswer, 'entries'> {
  readonly bucket: ShownBucket;
  readonly release: LimitsProps['release'];
}

function Details({ bucket, entries, release }: DetailsProps) {
  const { about, entries: own, redis_key: key, redis_slot: slot, note, now: level, limit, holds } = bucket;
  const isOther = level !== undefined && own.length > 0 && JSON.stringify(own) !== JSON.stringify(entries);
  return (
    <>
      <p>
        {visibleText(about)}
        {level?.in_flight !== undefined &&
          `. In flight: ${countText(level.in_flight)} of ${countText(limit)}`}
      </p>
      {isOther && (
        <p>
          for <Entries entries={own} />
        </p>
      )}
      {key !== null && (
        <p>
          Redis key <LongName text={key} />
          {slot !== null && `, slot ${countText(slot)}`}
        </p>
      )}
      {note !== undefined && <p class="remark">{visibleText(note)}</p>}
      {holds !== undefined && holds.list.length > 0 && <Holds {...holds} release={release} />}
    </>
  );
}

function Holds({ list, more, release }: ShownHolds & Pick<DetailsProps, 'release'>) {
  const releaseColumn: TableColumn<ShownHolds['list'][number]> = {
    heading: 'Action',
    cell: ({ id, age }) => (
      <Button disabled={noChangeReason.value !== undefined} onClick={() => release?.(id)}>
        Release<Spoken> the hold of {relativeText(-age, 0)}</Spoken>
      </Button>
    ),
  };
  return (
    <details>
      <summary>
        Holds: {countText(list.length)}
        {more > 0 && ` and ${countText(more)} more, not listed`}
      </summary>
      <Table
        caption="Holds, the first to expire at the top"
        rows={list}
        columns={[
          { heading: 'Began', cell: ({ age }) => <Relative at={now.value - age} /> },
          { heading: 'Expires in', figures: ({ ends_in }) => spanText(ends_in) },
          { heading: 'Held', figures: ({ amount }) => countText(amount) },
          ...(release === undefined ? [] : [releaseColumn]),
        ]}
      />
    </details>
  );
}
