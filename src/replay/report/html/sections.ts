import { printableLine } from '../../../printable.js';
import { candidateSentences } from '../candidates.js';
import { gateResultText, gateText } from '../gates.js';
import { logSentences } from '../log-sentences.js';
import { entryOf, entryText, groupNoun, shownName, shownPath, shownRule } from '../names.js';
import { countText, durationText, intervalText, lostShare, shareText } from '../numbers.js';
import type { GateReport, GroupReport, ReplayReport, RuleReport } from '../report.js';
import { chartData, chartedRules, periodsOf, startOf, type UseChart } from './chart-data.js';
import { type Content, type Html, html } from './html.js';
import { dateText, periodText, timeOfDay } from './times.js';

/** Maximum number of groups and rules in the tables, and of periods of a group. */
const [MAX_GROUPS, MAX_RULES, MAX_PERIODS] = [100, 50, 5];
/** Share of a limit from which a group is close to it, and the maximum number of such groups. */
const [NEAR, MAX_NEXT] = [0.75, 3];
const NOTHING = html``;

/** A column of a table; numbers are aligned on the right. */
interface TableColumn<Row> {
  readonly heading: string;
  readonly numbers?: true;
  readonly cell: (row: Row) => Content;
}

/** Returns the section about denials over time. */
export function denialsSection(report: ReplayReport): Html {
  const { labels, before, after, step } = chartData(report).denials;
  if (labels.length === 0) return NOTHING;
  const rows = labels.flatMap((label, at) => {
    const [was, will] = [before[at] ?? 0, after[at] ?? 0];
    return was === 0 && will === 0 ? [] : [{ label, was, will }];
  });
  const numbers = table<(typeof rows)[number]>(
    'Denied requests over time',
    [
      { heading: 'Time', cell: ({ label }) => label },
      { heading: 'Denied before', numbers: true, cell: ({ was }) => countText(was) },
      { heading: 'Denied after', numbers: true, cell: ({ will }) => countText(will) },
    ],
    rows,
  );
  return html`<section>
<h2>When requests would be denied</h2>
${
  rows.length === 0
    ? html`<p>No request was denied before the change, and none would be denied after it.</p>`
    : html`<p>Denied requests in each period of ${durationText(step)}.</p>
${canvas('denials', 'denials', 'Denied requests over time, before and after the change. The table below has the numbers.')}
${details('Show as table', numbers)}`
}
</section>`;
}

/** Returns the section about the groups that lose requests. */
export function affectedSection(report: ReplayReport): Html {
  const { groups } = report;
  const affected = (groups?.shown ?? []).filter(({ newlyDenied }) => newlyDenied.most > 0);
  if (groups === undefined || affected.length === 0) return NOTHING;
  const charted = chartData(report).affected?.names.length ?? 0;
  const rows = affected.slice(0, MAX_GROUPS);
  const entry = entryOf(groups);
  const noun = groupNoun(entry, 2);
  const more = groups.affected.most - rows.length;
  return html`<section>
<h2>${noun.charAt(0).toUpperCase()}${noun.slice(1)} that would lose requests</h2>
<p>${charted === 1 ? 'The chart shows when this caller' : `The chart shows when each of the ${charted} most affected ${noun}`} would
lose requests. The share is that of all its requests in the log. A caller with a peak use of 300% would lose about two
thirds of its largest burst.</p>
${canvas('affected', `rows-${charted}`, `Times in which the most affected ${noun} would lose requests. The table below has the times.`)}
${table<GroupReport>(
  'Affected callers',
  [
    { heading: entryText(entry), cell: ({ value }) => html`<b><bdi>${shownName(value)}</bdi></b>` },
    { heading: 'Requests', numbers: true, cell: ({ requests }) => countText(requests) },
    { heading: 'Denied before', numbers: true, cell: ({ deniedBefore }) => countText(deniedBefore) },
    { heading: 'Would lose', numbers: true, cell: ({ newlyDenied }) => intervalText(newlyDenied) },
    { heading: 'Share', numbers: true, cell: lostShare },
    { heading: 'Peak use', numbers: true, cell: peakUseText },
    { heading: 'Longest denial', cell: longestText },
    { heading: 'When', cell: (group) => whenText(group, report) },
  ],
  rows,
)}
${more > 0 ? html`<p>${countText(more)} more ${groupNoun(entry, more)} would lose requests.</p>` : NOTHING}
</section>`;
}

function peakUseText({ peakUse }: GroupReport): string {
  return peakUse === 0 ? '–' : shareText(peakUse);
}

function longestText({ longestDeniedSeconds }: GroupReport): string {
  return longestDeniedSeconds === 0 ? 'single requests' : durationText(longestDeniedSeconds);
}

/** Returns the periods in which a group loses requests, the longest first: `09:00 to 09:37 and 2 more times`. */
function whenText({ deniedSteps }: GroupReport, { timeline }: ReplayReport): string {
  const start = startOf(timeline);
  const { stepSeconds, requests } = timeline;
  const isOneDay = dateText(start) === dateText(start + requests.length * stepSeconds - 1);
  const periods = periodsOf(deniedSteps);
  const longest = [...periods]
    .sort((one, other) => other[1] - other[0] - (one[1] - one[0]))
    .slice(0, MAX_PERIODS);
  const texts = longest
    .sort(([one], [other]) => one - other)
    .map(([from, to]) => {
      const [begins, ends] = [start + from * stepSeconds, start + to * stepSeconds];
      return isOneDay ? `${timeOfDay(begins)} to ${timeOfDay(ends)}` : periodText(begins, ends);
    });
  const more = periods.length - longest.length;
  return more > 0 ? `${texts.join(', ')} and ${more} more` : texts.join(', ');
}

/** Returns the section about how much of the limits callers need. */
export function useSection(report: ReplayReport): Html {
  const charts = chartData(report).use;
  const rules = chartedRules(report);
  if (rules.length === 0) return NOTHING;
  const figures = rules.map((rule, at) => useFigure(rule, charts[at] as UseChart, at));
  return html`<section>
<h2>How much of the limit callers need</h2>
<p>Each bar counts callers by the largest part of the limit that they needed at any time. Callers above 100% exceed the
limit.${nextText(report)}</p>
<div class="figure-row">
${figures}</div>
</section>`;
}

/** Names the groups that come closest to a limit without losing requests. */
function nextText({ groups }: ReplayReport): Html {
  const next = (groups?.shown ?? [])
    .filter(({ newlyDenied, peakUse }) => newlyDenied.most === 0 && peakUse >= NEAR && peakUse <= 1)
    .slice(0, MAX_NEXT);
  if (next.length === 0) return NOTHING;
  const names = next.map(
    ({ value, peakUse }, at) =>
      html`${at === 0 ? '' : ', '}<bdi>${shownName(value)}</bdi> ${shareText(peakUse)}`,
  );
  return html` Closest to a limit: ${names}.`;
}

function useFigure(rule: RuleReport, { labels, callers }: UseChart, at: number): Html {
  const rows = labels.map((label, index) => ({ label, count: callers[index] ?? 0 }));
  const numbers = table<(typeof rows)[number]>(
    `Callers of ${ruleName(rule)}`,
    [
      { heading: 'Part of the limit', cell: ({ label }) => label },
      { heading: 'Callers', numbers: true, cell: ({ count }) => countText(count) },
    ],
    rows,
  );
  return html`<figure>
<figcaption><b><bdi>${ruleName(rule)}</bdi></b> (${shownPath(rule.limit)})</figcaption>
${canvas(`use-${at}`, 'use', `Callers by the part of the limit of ${ruleName(rule)} that they need. The table has the numbers.`)}
${details('Show as table', numbers)}
</figure>
`;
}

/** Returns the section about the rules, with the limits that would have been enough. */
export function rulesSection({ rules }: ReplayReport): Html {
  if (rules.length === 0) return NOTHING;
  const shown = rules.slice(0, MAX_RULES);
  const enough = (rule: RuleReport, share: 'none' | 'thousandth' | 'hundredth'): string =>
    rule.capacity === undefined ? 'unknown' : countText(rule.capacity[share]);
  const more = rules.length - shown.length;
  return html`<section>
<h2>Which limit would have been enough</h2>
<p>The last three columns are limits with which none, at most 1 in 1,000, or at most 1 in 100 of the requests is
denied: requests of a caller in a window, requests of a caller in flight at the same time, or the size of a token bucket
that refills as fast as now. If a size is far above the token bucket, callers send more for a long time than it refills,
and a faster refill helps more.</p>
${table<RuleReport>(
  'Limits',
  [
    { heading: 'Limit for', cell: (rule) => html`<b><bdi>${ruleName(rule)}</bdi></b>` },
    { heading: 'Limit', cell: ({ limit }) => shownPath(limit) },
    { heading: 'Requests', numbers: true, cell: ({ requests }) => countText(requests) },
    { heading: 'Newly denied', numbers: true, cell: ({ newlyDenied }) => intervalText(newlyDenied) },
    { heading: 'Share', numbers: true, cell: lostShare },
    { heading: 'Callers denied', numbers: true, cell: deniedCallersText },
    { heading: 'Denies none', numbers: true, cell: (rule) => enough(rule, 'none') },
    { heading: 'At most 1 in 1,000', numbers: true, cell: (rule) => enough(rule, 'thousandth') },
    { heading: 'At most 1 in 100', numbers: true, cell: (rule) => enough(rule, 'hundredth') },
  ],
  shown,
)}
${more > 0 ? html`<p>${countText(more)} more limits deny less.</p>` : NOTHING}
</section>`;
}

function deniedCallersText({ callers, deniedCallers }: RuleReport): string {
  return `${countText(deniedCallers)} of ${countText(callers)}`;
}

/** Returns the section about the bounds of `--max-newly-denied`. */
export function gatesSection({ gates }: ReplayReport): Html {
  if (gates.length === 0) return NOTHING;
  return html`<section>
<h2>Bounds that were checked</h2>
${table<GateReport>(
  'Bounds',
  [
    { heading: 'Newly denied at most', cell: (gate) => html`<b><bdi>${gateText(gate)}</bdi></b>` },
    { heading: 'Result', cell: ({ verdict }) => verdict },
    { heading: 'Reason', cell: gateResultText },
  ],
  gates,
)}
</section>`;
}

/** Returns the section about what limits the accuracy of the report. */
export function notesSection(report: ReplayReport): Html {
  const { log, notes } = report;
  const unread = log.unreadable.reduce((sum, { lines }) => sum + lines, 0);
  const sentences = [
    ...candidateSentences(report),
    ...notes,
    ...logSentences(log),
    ...(unread > 0
      ? [`${countText(unread)} of ${countText(log.lines)} lines in the log could not be read.`]
      : []),
    `Log files: ${log.files.map(shownPath).join(', ')} (${shownPath(log.format)}).`,
  ];
  return html`<section>
<h2>What you should know</h2>
<ul>
${sentences.map((sentence) => html`<li>${printableLine(sentence)}</li>\n`)}</ul>
</section>`;
}

function ruleName({ domain, rule }: RuleReport): string {
  return `${shownName(domain)}: ${shownRule(rule)}`;
}

/** `kind`: the class in report.css that sets the height of the chart. */
function canvas(id: string, kind: string, description: string): Html {
  return html`<div class="chart ${kind}">
<canvas id="${id}" role="img" aria-label="${description}"></canvas>
</div>`;
}

function details(summary: string, content: Html): Html {
  return html`<details><summary>${summary}</summary>${content}</details>`;
}

/** Returns a table; `label` names it for screen readers. */
function table<Row>(label: string, columns: readonly TableColumn<Row>[], rows: readonly Row[]): Html {
  const cellClass = ({ numbers }: TableColumn<Row>): string => (numbers ? 'number' : 'text');
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${label}"><table>
<thead><tr>${columns.map((column) => html`<th scope="col" class="${cellClass(column)}">${column.heading}</th>`)}</tr></thead>
<tbody>
${rows.map(
  (row) =>
    html`<tr>${columns.map((column) => html`<td class="${cellClass(column)}">${column.cell(row)}</td>`)}</tr>\n`,
)}</tbody>
</table></div>`;
}
