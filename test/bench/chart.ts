import type { Row } from './load/measure-case.js';

const WIDTH = 860;
const LABEL_WIDTH = 250;
const VALUE_WIDTH = 130;
const BAR = 14;
const LINE = 18;
const GROUP_GAP = 14;
const CAPTION_TOP = 36;
const CAPTION_LINE = 16;

/** The colors depend on the reader's color scheme, because an image cannot use the style of the page. */
const STYLE = `
    text { font: 12px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600; font-size: 14px }
    .case { font-weight: 600 }
    .faint { fill: #59636e }
    .server { fill: #0969da }
    .redis { fill: #bf3989 }
    .empty { fill: #afb8c1 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .faint { fill: #9198a1 }
      .server { fill: #4493f8 }
      .redis { fill: #db61a2 }
      .empty { fill: #656c76 }
    }
`;

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

/** Groups the rows by case. */
export function byCase(rows: readonly Row[]): Row[][] {
  const groups: Row[][] = [];
  for (const row of rows) {
    const last = groups[groups.length - 1];
    if (last?.[0]?.case === row.case) last.push(row);
    else groups.push([row]);
  }
  return groups;
}

/**
 * Returns an SVG with the CPU time per decision of server and Redis: a bar for each row, grouped by case, with the
 * baseline in gray. `caption` describes the run. A semicolon in the caption begins a new line.
 */
export function chart(rows: readonly Row[], caption: string): string {
  const totalMicros = (row: Row) => row.serverMicros + (row.redisMicros ?? 0);
  const longest = Math.max(...rows.map(totalMicros));
  const scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / longest;
  const parts: string[] = [];
  const lines = caption.split('; ');
  let y = CAPTION_TOP + lines.length * CAPTION_LINE;
  for (const group of byCase(rows)) {
    parts.push(`<text class="case" x="8" y="${y + 12}">${escaped((group[0] as Row).case)}</text>`);
    y += LINE;
    for (const row of group) {
      const serverWidth = Math.max(1, row.serverMicros * scale);
      const redisWidth = (row.redisMicros ?? 0) * scale;
      const kind = row.target.startsWith('empty') ? 'empty' : 'server';
      const ratio = row.ratio === undefined || kind === 'empty' ? '' : ` (${row.ratio.toFixed(2)} ×)`;
      parts.push(
        `<text class="faint" x="${LABEL_WIDTH - 8}" y="${y + 11}" text-anchor="end">${escaped(row.target)}</text>`,
        `<rect class="${kind}" x="${LABEL_WIDTH}" y="${y}" width="${serverWidth.toFixed(1)}" height="${BAR}"/>`,
      );
      if (redisWidth > 0) {
        const x = (LABEL_WIDTH + serverWidth).toFixed(1);
        parts.push(
          `<rect class="redis" x="${x}" y="${y}" width="${redisWidth.toFixed(1)}" height="${BAR}"/>`,
        );
      }
      const end = (LABEL_WIDTH + serverWidth + redisWidth + 6).toFixed(1);
      parts.push(`<text x="${end}" y="${y + 11}">${totalMicros(row).toFixed(1)} µs${ratio}</text>`);
      y += LINE;
    }
    y += GROUP_GAP;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img">
  <title>CPU time per decision</title>
  <style>${STYLE}  </style>
  <text class="title" x="8" y="18">CPU time per decision, µs: server (blue), Redis (red), an empty grpc-js handler (grey)</text>
  ${lines.map((line, i) => `<text class="faint" x="8" y="${CAPTION_TOP + i * CAPTION_LINE}">${escaped(line)}</text>`).join('\n  ')}
  ${parts.join('\n  ')}
</svg>
`;
}
