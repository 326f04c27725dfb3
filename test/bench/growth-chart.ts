import type { GrowthPoint } from './micro/measure.js';

/** A point of the chart, with the CPU time of a match in microseconds. */
export interface MeasuredPoint extends GrowthPoint {
  readonly micros: number;
}

const WIDTH = 860;
const HEIGHT = 420;
const TOP = 60;
const BOTTOM = 370;
const PANELS = [
  { from: 60, to: 330, title: 'against bytes, 1,000 rules', x: 'bytes' },
  { from: 400, to: 620, title: 'against rules, 64 bytes', x: 'rules' },
] as const;
const LEGEND_X = 640;
const COLORS = [
  '#0969da',
  '#bf3989',
  '#1a7f37',
  '#9a6700',
  '#8250df',
  '#cf222e',
  '#57606a',
  '#0a7ea4',
  '#bc4c00',
];
const DASHES = ['', '6 3', '2 3'];

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

const grouped = (number: number): string => number.toLocaleString('en');

/**
 * Returns an SVG with the cost of matching. Both axes are logarithmic, so that proportional cost is a rising line, and
 * constant cost is a horizontal line.
 */
export function growthChart(points: readonly MeasuredPoint[], caption: string): string {
  const matchers = [...new Set(points.map(({ matcher }) => matcher))];
  const micros = points.map((point) => point.micros);
  const [low, high] = [
    Math.floor(Math.log10(Math.min(...micros))),
    Math.ceil(Math.log10(Math.max(...micros))),
  ];
  const yOf = (value: number): number => BOTTOM - ((Math.log10(value) - low) / (high - low)) * (BOTTOM - TOP);
  const parts: string[] = [];
  for (const { from, to, title, x } of PANELS) {
    // Only the points with this number of rules vary the number of bytes.
    const fixedRules = (matcher: string): number => {
      const varied = points.filter((point) => point.matcher === matcher && point.bytes > 64);
      return varied[0]?.rules ?? 1;
    };
    const shown = points.filter((point) =>
      x === 'bytes' ? point.rules === fixedRules(point.matcher) : point.bytes === 64,
    );
    const all = shown.map((point) => point[x]);
    const [first, last] = [Math.min(...all), Math.max(...all)];
    const xOf = (value: number): number =>
      from + (Math.log(value / first) / Math.max(Math.log(last / first), 1e-9)) * (to - from);
    parts.push(`<text x="${from}" y="${TOP - 12}">${escaped(title)}</text>`);
    for (let power = low; power <= high; power++) {
      const y = yOf(10 ** power).toFixed(1);
      parts.push(`<path class="grid" d="M${from} ${y}H${to}"/>`);
      parts.push(
        `<text class="faint" x="${from - 6}" y="${y}" dy="4" text-anchor="end">${10 ** power} µs</text>`,
      );
    }
    for (const value of new Set(all)) {
      const at = xOf(value).toFixed(1);
      parts.push(
        `<text class="faint" x="${at}" y="${BOTTOM + 18}" text-anchor="middle">${grouped(value)}</text>`,
      );
    }
    matchers.forEach((matcher, i) => {
      const line = new Map(
        shown.filter((point) => point.matcher === matcher).map((point) => [point[x], point.micros]),
      );
      const path = [...line]
        .sort(([a], [b]) => a - b)
        .map(([value, cost]) => `${xOf(value).toFixed(1)} ${yOf(cost).toFixed(1)}`);
      parts.push(`<path class="line" ${strokeOf(i)} d="M${path.join('L')}"/>`);
    });
  }
  matchers.forEach((matcher, i) => {
    const y = TOP + i * 18;
    parts.push(`<path class="line" ${strokeOf(i)} d="M${LEGEND_X} ${y}h24"/>`);
    parts.push(`<text x="${LEGEND_X + 30}" y="${y + 4}">${escaped(matcher)}</text>`);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">
  <title>CPU time of matching one value</title>
  <style>
    text { font: 12px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600; font-size: 14px }
    .faint { fill: #59636e; font-size: 11px }
    .grid { stroke: #afb8c1; stroke-width: 0.5 }
    .line { fill: none; stroke-width: 1.6 }
    @media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .faint { fill: #9198a1 } }
  </style>
  <text class="title" x="8" y="18">CPU time of matching one value</text>
  <text class="faint" x="8" y="${HEIGHT - 8}">${escaped(caption)}</text>
  ${parts.join('\n  ')}
</svg>
`;
}

function strokeOf(i: number): string {
  const dash = DASHES[Math.floor(i / COLORS.length) % DASHES.length] as string;
  return `stroke="${COLORS[i % COLORS.length]}"${dash === '' ? '' : ` stroke-dasharray="${dash}"`}`;
}
