import type {
  BucketAnswer,
  BucketLevel,
  ShownBucket,
  ShownHold,
  ShownHolds,
} from '../../admin/buckets/messages.js';
import { type Child, el, svg } from '../dom/element.js';
import { type TableColumn, tableOf } from '../dom/table.js';
import { entriesElement, expandableName, nameOf, sentence, stateOf } from '../dom/texts.js';
import { ENFORCED } from '../text/limit-words.js';
import { countText } from '../text/numbers.js';
import { visibleText } from '../text/shown-text.js';
import { spanText } from '../text/times.js';

/** Creates the cell with a button that releases a hold. */
type ReleaseCell = (hold: ShownHold) => Child;

/** Returns the limits of an answer as a table. Without `release`, holds have no button. */
export function limitsTable(answer: BucketAnswer, release?: ReleaseCell): readonly Child[] {
  const { buckets, more, meets } = answer;
  if (buckets.length === 0) return [];
  const table = tableOf<ShownBucket>(
    {
      caption:
        meets === 'part'
          ? 'Limits that could apply to descriptors with these entries'
          : 'Limits that this request matches',
      captionShown: true,
      columns: [
        {
          heading: 'Rule',
          cell: ({ rule, name }) => [
            // A bucket of an override has this name. A rule of a policy may have the same name.
            rule === 'override' ? el('em', {}, 'override: the limit in the request') : nameOf(rule),
            ...(name === '' ? [] : [' ', el('span', { class: 'given' }, nameOf(name))]),
          ],
        },
        { heading: 'Remaining', figures: true, cell: remainingCell },
        { heading: 'Limit', figures: true, cell: ({ limit }) => countText(limit) },
        { heading: 'Debt', figures: true, cell: (bucket) => changed(bucket, ({ debt }) => countText(debt)) },
        span('Next token in', ({ next_token_in }) => next_token_in),
        span('Full in', ({ full_in }) => full_in),
        { heading: 'Enforced', cell: ({ enforcement }) => enforcedState(enforcement) },
      ],
      below: (bucket) => detailsOf(bucket, answer, release),
    },
    buckets,
  );
  return [
    table,
    more > 0
      ? el(
          'p',
          { class: 'note' },
          `Limits not listed: ${countText(more)}. To see these limits, enter more entries.`,
        )
      : undefined,
  ];
}

function span(heading: string, of: (level: BucketLevel) => number | null): TableColumn<ShownBucket> {
  const cell = ({ now }: ShownBucket): string => {
    if (now === undefined) return '?';
    const seconds = of(now);
    return seconds === null ? '–' : spanText(seconds);
  };
  return { heading, figures: true, cell };
}

function enforcedState(enforcement: string): HTMLElement {
  const denies = ['enforce', 'quota', 'spill'].includes(enforcement);
  return stateOf(denies ? 'good' : 'watch', ENFORCED.get(enforcement) ?? visibleText(enforcement));
}

function remainingCell(bucket: ShownBucket): readonly Child[] {
  return [...changed(bucket, ({ left }) => countText(left)), bar(bucket)];
}

/** Shows the previous value, and the value after the action. */
function changed({ before, now }: ShownBucket, tell: (level: BucketLevel) => string): readonly Child[] {
  const [was, is] = [before, now].map((level) => (level === undefined ? undefined : tell(level)));
  if (was === undefined || was === is) return [is ?? was ?? '?'];
  if (is === undefined) return [was];
  return [
    el('span', { class: 'was' }, was),
    el('span', { class: 'spoken' }, ' before, '),
    el('span', { 'aria-hidden': 'true' }, ' → '),
    el('strong', {}, is),
    el('span', { class: 'spoken' }, ' afterwards'),
  ];
}

/** Shows how full a bucket is. Hidden from screen readers, because the numbers say the same. */
function bar({ now, limit }: ShownBucket): Child {
  if (now === undefined || limit <= 0) return undefined;
  const share = Math.max(0, Math.min(1, now.left / limit));
  return svg(
    'svg',
    { class: 'bar', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'bar-all', width: 100, height: 6 }),
    svg('rect', {
      class: share < 0.1 ? 'bar-low' : 'bar-left',
      width: Math.round(share * 1000) / 10,
      height: 6,
    }),
  );
}

function detailsOf(
  bucket: ShownBucket,
  { entries }: BucketAnswer,
  release: ReleaseCell | undefined,
): readonly Child[] {
  const { about, entries: own, redis_key: key, redis_slot: slot, note, now, limit } = bucket;
  const isOther = now !== undefined && own.length > 0 && JSON.stringify(own) !== JSON.stringify(entries);
  return [
    el('p', {}, visibleText(about)),
    now?.in_flight === undefined
      ? undefined
      : el('p', {}, `In flight: ${countText(now.in_flight)} of ${countText(limit)}`),
    isOther ? el('p', {}, 'for ', entriesElement(own)) : undefined,
    key === null
      ? undefined
      : el(
          'p',
          {},
          'Redis key ',
          expandableName(key),
          slot === null ? undefined : `, slot ${countText(slot)}`,
        ),
    note === undefined ? undefined : el('p', { class: 'problem-line' }, visibleText(note)),
    bucket.holds === undefined ? undefined : holdsOf(bucket.holds, release),
  ];
}

/** Returns the holds of a bucket, which are hidden until the user opens them. */
function holdsOf({ list, more }: ShownHolds, release: ReleaseCell | undefined): Child {
  if (list.length === 0) return undefined;
  const columns: TableColumn<ShownHold>[] = [
    { heading: 'Age', cell: ({ age }) => spanText(age) },
    { heading: 'Expires in', figures: true, cell: ({ ends_in }) => spanText(ends_in) },
    { heading: 'Held', figures: true, cell: ({ amount }) => countText(amount) },
  ];
  if (release !== undefined) columns.push({ heading: 'Action', cell: release });
  const shown = `Holds: ${countText(list.length)}${more > 0 ? ` and ${countText(more)} more, not listed` : ''}`;
  return el(
    'details',
    {},
    el('summary', {}, shown),
    tableOf<ShownHold>({ caption: 'Holds, the first to expire at the top', columns }, list),
  );
}

/** Returns the notes of an answer. */
export function notesOf({ notes, meets }: Pick<BucketAnswer, 'notes' | 'meets'>): readonly Child[] {
  const none =
    'No limit matches these entries or any descriptor that contains these entries. To find the reason, ' +
    'run weir explain.';
  return (meets === 'nothing' && notes.length === 0 ? [none] : notes).map(sentence);
}
