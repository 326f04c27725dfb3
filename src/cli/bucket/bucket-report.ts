import type { BucketAnswer, BucketLevel, ShownBucket, ShownHolds } from '../../admin/buckets/messages.js';
import { shellText } from '../../config/show/shell-text.js';
import { printable } from '../../runtime/printable.js';
import { secondsText } from '../../runtime/texts.js';
import { type Column, tableLines, wrapped } from '../table.js';
import { entriesText } from '../value-text.js';

const WIDTH = 80;

const BUCKET_COLUMNS: readonly Column[] = [
  { heading: 'LEFT', side: 'right' },
  { heading: 'LIMIT', side: 'right' },
  { heading: 'DEBT', side: 'right' },
  { heading: 'RESET IN', side: 'right' },
  { heading: 'FULL IN', side: 'right' },
  { heading: 'ENFORCED', side: 'left' },
  { heading: 'RULE', side: 'left' },
];
const HOLD_COLUMNS: readonly Column[] = [
  { heading: 'AGE', side: 'right' },
  { heading: 'EXPIRES IN', side: 'right' },
  { heading: 'HELD', side: 'right' },
  { heading: 'HOLD', side: 'left' },
];

/** Text for each value of {@link ShownBucket.enforcement}. */
export const ENFORCED_WORDS: ReadonlyMap<string, string> = new Map([
  ['enforce', 'yes'],
  ['observe', 'no'],
  ['quota', 'with other quotas'],
  ['spill', 'with its chain'],
]);

/** Formats an answer of the debug port at `server` as lines. */
export function bucketLines(answer: BucketAnswer, server: string): readonly string[] {
  const parts = [headLines(answer, server), bucketsPart(answer), notesPart(answer)];
  return parts.filter((part) => part.length > 0).flatMap((part, at) => (at === 0 ? part : ['', ...part]));
}

function headLines(
  { action, domain, entries, store, dry_run }: BucketAnswer,
  server: string,
): readonly string[] {
  const lines: string[] = [];
  if (dry_run) lines.push(`dry run of ${action}: no changes were made`);
  lines.push(`domain   ${shellText(domain)}`, `entries  ${entriesText(entries)}`);
  lines.push(`server   ${printable(server)}`, `store    ${printable(store)}`);
  return lines;
}

function bucketsPart(answer: BucketAnswer): readonly string[] {
  const { buckets, more, meets, entries } = answer;
  const lines: string[] = [];
  if (meets === 'part' && buckets.length > 0) {
    lines.push('Limits that could apply to descriptors with these entries:', '');
  }
  if (buckets.length > 0) {
    const [head = '', ...rows] = tableLines(BUCKET_COLUMNS, buckets.map(bucketRow));
    lines.push(head);
    for (const [at, bucket] of buckets.entries()) {
      lines.push(rows[at] ?? '', ...detailLines(bucket, entriesText(entries)));
    }
  }
  if (more > 0) lines.push(`Limits not listed: ${more}. To see these limits, enter more entries.`);
  return lines;
}

function bucketRow({ now, before, limit, enforcement, rule, name }: ShownBucket): readonly string[] {
  const change = (tell: (level: BucketLevel) => string): string => {
    const [was, is] = [before, now].map((level) => level && tell(level));
    if (was === undefined || was === is) return is ?? was ?? '?';
    return is === undefined ? was : `${was} -> ${is}`;
  };
  return [
    change(({ left }) => String(left)),
    String(limit),
    change(({ debt }) => (debt === 0 ? '-' : String(debt))),
    timeText(now?.next_token_in),
    timeText(now?.full_in),
    ENFORCED_WORDS.get(enforcement) ?? printable(enforcement),
    printable(rule + (name === '' ? '' : ` (${name})`)),
  ];
}

/** Formats a time: `?` if the level is unknown, and `-` if the limit has no such time. */
function timeText(seconds: number | null | undefined): string {
  if (seconds === undefined) return '?';
  return seconds === null ? '-' : secondsText(seconds);
}

function detailLines(bucket: ShownBucket, asked: string): readonly string[] {
  const { about, entries, redis_key: key, redis_slot: slot, note } = bucket;
  const own = entriesText(entries);
  const lines = wrapped(printable(about), WIDTH - 6);
  return [
    ...lines,
    ...(bucket.now?.in_flight === undefined ? [] : [`in flight: ${bucket.now.in_flight} of ${bucket.limit}`]),
    // A bucket without a level is not a bucket yet, because the values of some entries are unknown.
    ...(bucket.now === undefined || own === asked || own === '' ? [] : [`for ${own}`]),
    // The key is shown in full, because users copy it to redis-cli.
    ...(key === null ? [] : [`Redis key ${printable(key)}${slot === null ? '' : `, slot ${slot}`}`]),
    ...(note === undefined ? [] : wrapped(printable(note), WIDTH - 6)),
    ...holdLines(bucket.holds),
  ].map((line) => `      ${line}`);
}

function holdLines(holds: ShownHolds | undefined): readonly string[] {
  if (holds === undefined || holds.list.length === 0) return [];
  const rows = holds.list.map(({ id, amount, age, ends_in }) => [
    secondsText(age),
    secondsText(ends_in),
    String(amount),
    printable(id),
  ]);
  const lines = tableLines(HOLD_COLUMNS, rows);
  return holds.more > 0 ? [...lines, `and ${holds.more} more, not listed`] : lines;
}

function notesPart({ notes, meets }: BucketAnswer): readonly string[] {
  const none =
    'No limit matches these entries or any descriptor that contains these entries. To find the reason, ' +
    'run weir explain.';
  return (meets === 'nothing' && notes.length === 0 ? [none] : notes).flatMap((note) =>
    wrapped(printable(note), WIDTH),
  );
}
