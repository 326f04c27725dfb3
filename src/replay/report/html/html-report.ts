import { createHash } from 'node:crypto';
import { readAsset, version } from '../../../assets.js';
import { printableJson, printableLine } from '../../../printable.js';
import {
  gainSentence,
  lossClause,
  mostAffected,
  nothingSentence,
  partialSentence,
  undeniedSentence,
} from '../headline.js';
import { shownPath } from '../names.js';
import { countText, intervalText } from '../numbers.js';
import type { ReplayReport } from '../report.js';
import { chartData } from './chart-data.js';
import { type Html, html, trusted } from './html.js';
import {
  affectedSection,
  denialsSection,
  gatesSection,
  notesSection,
  rulesSection,
  useSection,
} from './sections.js';
import { periodText } from './times.js';

const FOLDER = 'src/page/report';

/**
 * Returns the report as one HTML file with charts. It needs no other file and no network access. Throws if the build is
 * incomplete.
 */
export function htmlReport(report: ReplayReport): string {
  const style = readAsset(`${FOLDER}/report.css`);
  const script = readAsset(`${FOLDER}/report.js`);
  const data = printableJson(chartData(report)).replaceAll('<', '\\u003c');
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${contentSecurityPolicy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>Rate limit report: ${shownPath(report.after.name)}</title>
<style>${trusted(style)}</style>
</head>
<body>
<main>
${headOf(report)}
${gatesSection(report)}
${denialsSection(report)}
${affectedSection(report)}
${useSection(report)}
${rulesSection(report)}
${notesSection(report)}
</main>
<footer>Created by weir ${version()}. All times are in UTC.</footer>
<script type="application/json" id="chart-data">${trusted(data)}</script>
<script type="module">${trusted(script)}</script>
</body>
</html>
`;
  return page.markup;
}

function headOf(report: ReplayReport): Html {
  const { total, partial } = report;
  const others = [
    ...partialSentence(partial).map((sentence) => html`${sentence}`),
    ...affectedSentence(report),
    ...[...gainSentence(total.newlyAllowed), ...undeniedSentence(report)].map(
      (sentence) => html`${sentence}`,
    ),
  ];
  const figures: readonly (readonly [string, string])[] = [
    ['Requests with a limit', countText(total.requests)],
    ['Denied before', countText(total.deniedBefore)],
    ['Denied after', intervalText(total.deniedAfter)],
    ['Newly denied', intervalText(total.newlyDenied)],
    ['Newly allowed', intervalText(total.newlyAllowed)],
  ];
  return html`<header>
<p class="kicker">What a change of the rate limits would have done</p>
<h1>${total.requests === 0 ? nothingSentence(report) : `${lossClause(report)}.`}</h1>
${others.map((sentence) => html`<p class="more">${sentence}</p>`)}
${report.warnings.map((warning) => html`<p class="warning"><b>Warning:</b> ${printableLine(warning)}</p>`)}
<p>${introduction(report)}</p>
<dl class="figures">
${figures.map(([name, figure]) => html`<div><dt>${name}</dt><dd>${figure}</dd></div>`)}
</dl>
</header>`;
}

/** Isolates names, so that a name in Hebrew or Arabic does not reorder the numbers that follow. */
function affectedSentence(report: ReplayReport): readonly Html[] {
  const { named, more } = mostAffected(report);
  if (named.length === 0) return [];
  const names = named.map(({ name, loss }, at) => html`${at === 0 ? '' : ', '}<bdi>${name}</bdi> ${loss}`);
  return [html`Requests that the most affected would lose: ${names}${more === '' ? '' : `, ${more}`}.`];
}

function introduction({ log, before, after }: ReplayReport): string {
  const { first, last } = log;
  const minute = (time: string): number => Math.floor(Date.parse(time) / 60_000) * 60;
  const span =
    first === undefined || last === undefined ? '' : ` of ${periodText(minute(first), minute(last))}`;
  const against =
    before.kind === 'policy'
      ? `“Before” means the limits in ${printableLine(before.name)}.`
      : '“Before” means what the log says about each request.';
  return (
    `weir read the ${countText(log.requests)} requests in the log${span}, and decided each of them again with the ` +
    `limits in ${printableLine(after.name)}. ${against} A denied request gets an error instead of an answer.`
  );
}

/** Returns a policy that allows only this script and this style (Content Security Policy Level 3). */
function contentSecurityPolicy(style: string, script: string): string {
  return [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
