import type { TopAnswer, TopBucket } from '../../admin/buckets/messages.js';
import { printable } from '../../printable.js';
import { secondsText } from '../../runtime/span-text.js';
import { type Column, tableLines } from '../table.js';
import { entriesText } from '../value-text.js';

const COLUMNS: readonly Column[] = [
  { heading: 'DENIED', side: 'right' },
  { heading: 'USED', side: 'right' },
  { heading: 'OF LIMIT', side: 'right' },
  { heading: 'RULE', side: 'left' },
  { heading: 'ENTRIES', side: 'left' },
];

/** Formats the answer as a table, below lines with the period and the possible error. */
export function topLines(answer: TopAnswer, from: string): readonly string[] {
  const hasSeveralDomains = answer.top.some(({ domain }) => domain !== answer.top[0]?.domain);
  const rows = answer.top.map((bucket) => [
    String(bucket.denied),
    String(bucket.used),
    `${Math.round(bucket.used_ratio * 100)}%`,
    ruleText(bucket, hasSeveralDomains),
    entriesText(bucket.entries),
  ]);
  const table = rows.length === 0 ? [nothingText(answer)] : tableLines(COLUMNS, rows);
  return [`most ${answer.by} in the last ${answer.of}, ${from}`, errorText(answer), '', ...table];
}

/** Returns a line with the possible error of the numbers, the sampling rate and an incomplete period. */
function errorText({ error, sampled, covers, of }: TopAnswer): string {
  const whole = of === 'minute' ? 60 : 3600;
  const parts = [
    ...(error.denied > 0 || error.used > 0
      ? [
          `numbers are too high by at most ${Math.round(error.denied)} denied requests and ` +
            `${Math.round(error.used)} used hits`,
        ]
      : []),
    ...(error.denied === 0 && error.used === 0 && sampled === 1 ? ['exact numbers'] : []),
    ...(sampled > 1 ? [`estimated from 1 in ${sampled} decisions`] : []),
    ...(covers < whole * 0.95 ? [`only ${secondsText(covers)} of data so far`] : []),
  ];
  return parts.join('; ');
}

/** Returns the line shown if there are no rows. */
function nothingText({ by, of }: Pick<TopAnswer, 'by' | 'of'>): string {
  return by === 'denied'
    ? `no requests were denied in the last ${of}`
    : `no hits were used in the last ${of}`;
}

function ruleText({ domain, rule, plan }: TopBucket, withDomain: boolean): string {
  return printable(`${withDomain ? `${domain}: ` : ''}${rule}${plan === undefined ? '' : ` (plan ${plan})`}`);
}
