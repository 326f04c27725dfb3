import type { AllSeries } from '../../admin/page/messages.js';
import {
  areaPath,
  axisTop,
  type Downsampled,
  downsample,
  groupAverages,
  indexAt,
  linePath,
} from '../text/chart-shape.js';
import { perSecond } from '../text/numbers.js';
import { clockText, minuteText, spanText } from '../text/times.js';
import { el, freshId, svg } from './element.js';
import { tableOf } from './table.js';

/** The times of a chart's values. */
export interface ChartTime {
  /** Length of a step, in seconds. */
  readonly step: number;
  /** End of the last step, in seconds since the epoch. */
  readonly ends: number;
  /** Number of steps in the width of the chart. */
  readonly slots: number;
}

/** Approximate maximum number of points. If there are more, only the highest of each group is drawn. */
const MAX_POINTS = 180;
const BOX = { width: 600, height: 100 };
/** Approximate maximum number of rows in the table of a chart. */
const MAX_ROWS = 12;

interface Measure {
  readonly key: keyof AllSeries;
  readonly name: string;
  readonly sign: string;
  /** Whether the chart is hidden while all values are 0. */
  readonly rare?: boolean;
}
/** The measures that are recorded for each rule and for all rules together. */
const RULE_MEASURES: readonly Measure[] = [
  { key: 'ok', name: 'Allowed', sign: '●' },
  { key: 'denied', name: 'Denied', sign: '▲' },
  { key: 'would', name: 'Would be denied', sign: '◆' },
];
/** The measures that are recorded only for all rules together, after those of single rules. */
export const ALL_MEASURES: readonly Measure[] = [
  ...RULE_MEASURES,
  { key: 'errors', name: 'Errors (calls)', sign: '✕' },
  { key: 'failure_allow', name: 'Allowed without the store', sign: '○', rare: true },
  { key: 'failure_deny', name: 'Denied without the store', sign: '△', rare: true },
  { key: 'failure_local', name: 'Decided in memory, without the store', sign: '◇', rare: true },
];

/** A chart of one measure, with its current rate. */
class MiniChart {
  readonly element: HTMLElement;
  readonly #now = el('span', { class: 'rate' });
  readonly #peak = el('span', { class: 'peak' });
  readonly #axis = el('span', { class: 'axis-top', 'aria-hidden': 'true' });
  readonly #from = el('span');
  readonly #until = el('span', {}, 'now');
  readonly #at = el('span', { class: 'at' });
  readonly #line = svg('path', { class: 'line', 'vector-effect': 'non-scaling-stroke' });
  readonly #area = svg('path', { class: 'area' });
  readonly #cursor = svg('path', { class: 'cursor', 'vector-effect': 'non-scaling-stroke' });
  readonly #title = svg('title', { id: freshId() });
  readonly #description = svg('desc', { id: freshId() });
  readonly #name: string;
  readonly #subject: string;
  #drawn: Downsampled = { values: [], slots: 2, per: 1, newest: 1 };
  #time: Pick<ChartTime, 'step' | 'ends'> = { step: 0, ends: 0 };

  constructor({ key, name, sign }: Measure, of: string) {
    this.#name = name;
    this.#subject = of;
    const grid = svg('path', {
      class: 'grid',
      d: 'M0 0H600M0 50H600M0 100H600',
      'vector-effect': 'non-scaling-stroke',
    });
    const drawing = svg(
      'svg',
      {
        viewBox: `0 0 ${BOX.width} ${BOX.height}`,
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-labelledby': `${this.#title.id} ${this.#description.id}`,
        onpointermove: (event) => this.#point(event as PointerEvent),
        onpointerleave: () => this.#unpoint(),
      },
      this.#title,
      this.#description,
      grid,
      this.#area,
      this.#line,
      this.#cursor,
    );
    this.element = el(
      'div',
      { class: `chart ${key}` },
      el('p', { class: 'chart-name' }, el('span', { 'aria-hidden': 'true', class: 'sign' }, sign), name),
      el('p', { class: 'chart-now' }, this.#now, el('span', { class: 'unit' }, ' per second'), this.#peak),
      el('div', { class: 'plot' }, this.#axis, drawing),
      el('p', { class: 'axis', 'aria-hidden': 'true' }, this.#from, this.#at, this.#until),
    );
  }

  show(all: readonly number[], { step, ends, slots: steps }: ChartTime): void {
    const last = step > 0 ? Math.round(ends / step) - 1 : 0;
    const drawn = downsample(all.slice(-steps), last, steps, MAX_POINTS);
    const { values, slots } = drawn;
    this.#drawn = drawn;
    this.#time = { step, ends };
    const span = spanText(steps * step);
    this.#title.textContent = `${this.#name} per second for ${this.#subject}, last ${span}`;
    if (step > 0) {
      this.#from.textContent = `${minuteText(this.#endOf(slots - 1))}, ${span} ago`;
      this.#until.textContent = `now, ${minuteText(ends)}`;
    }
    const top = axisTop(values);
    const peak = values.reduce((most, value) => Math.max(most, value), 0);
    const now = all.at(-1);
    this.#now.textContent = now === undefined ? '–' : perSecond(now);
    this.#peak.textContent = `peak ${perSecond(peak)}`;
    this.#axis.textContent = perSecond(top);
    this.#line.setAttribute('d', linePath(values, slots, top, BOX));
    this.#area.setAttribute('d', areaPath(values, slots, top, BOX));
    this.#description.textContent =
      now === undefined ? 'No data yet.' : `Now ${perSecond(now)}, peak ${perSecond(peak)}.`;
  }

  /** Returns the time at which a point ends; `back` is its distance from the last point. */
  #endOf(back: number): number {
    const { per, newest } = this.#drawn;
    const { step, ends } = this.#time;
    return back === 0 ? ends : ends - (newest + (back - 1) * per) * step;
  }

  #point(event: PointerEvent): void {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    const { values, slots, per } = this.#drawn;
    const index = indexAt((event.clientX - left) / width, values.length, slots);
    if (index === undefined) {
      this.#unpoint();
      return;
    }
    const back = values.length - 1 - index;
    const x = ((slots - 1 - back) / (slots - 1)) * BOX.width;
    this.#cursor.setAttribute('d', `M${x} 0V${BOX.height}`);
    const rate = `${per > 1 ? 'at most ' : ''}${perSecond(values[index] ?? 0)}`;
    this.#at.textContent = `${clockText(this.#endOf(back))}: ${rate} per second`;
  }

  #unpoint(): void {
    this.#cursor.setAttribute('d', '');
    this.#at.textContent = '';
  }
}

/** One chart for each measure, and a table of their numbers. */
export class TrafficCharts {
  readonly element: HTMLElement;
  readonly #measures: readonly Measure[];
  readonly #charts: readonly MiniChart[];
  readonly #table = el('div');
  readonly #numbers: HTMLDetailsElement;
  readonly #subject: string;
  #shown: { readonly series: Partial<AllSeries>; readonly time: ChartTime } | undefined;

  /** @param of the subject of the charts for screen readers, such as `all rules` */
  constructor(of: string, measures: readonly Measure[] = RULE_MEASURES) {
    this.#subject = of;
    this.#measures = measures;
    this.#charts = measures.map((measure) => new MiniChart(measure, of));
    this.#numbers = el(
      'details',
      { class: 'numbers', ontoggle: () => this.#fillTable() },
      el('summary', {}, 'Show as table'),
      this.#table,
    );
    this.element = el(
      'div',
      { class: 'charts' },
      el('div', { class: 'chart-row' }, ...this.#charts.map(({ element }) => element)),
      this.#numbers,
    );
  }

  show(series: Partial<AllSeries>, time: ChartTime): void {
    this.#shown = { series, time };
    for (const [at, chart] of this.#charts.entries()) {
      const measure = this.#measures[at] as Measure;
      chart.element.hidden = !isShown(measure, series);
      chart.show(series[measure.key] ?? [], time);
    }
    if (this.#numbers.open) this.#fillTable();
  }

  #fillTable(): void {
    if (this.#shown === undefined || !this.#numbers.open) return;
    const { series, time } = this.#shown;
    const perGroup = Math.max(1, Math.round(time.slots / MAX_ROWS));
    const measures = this.#measures.filter((measure) => isShown(measure, series));
    const columns = measures.map(({ key }) =>
      groupAverages((series[key] ?? []).slice(-time.slots), perGroup),
    );
    const rows = (columns[0] ?? []).map((_, at) => ({
      until: time.ends - at * perGroup * time.step,
      rates: columns.map((column) => column[at] ?? 0),
    }));
    this.#table.replaceChildren(
      tableOf<(typeof rows)[number]>(
        {
          caption: `Average descriptors per second for ${this.#subject}, in steps of ${spanText(perGroup * time.step)}`,
          captionShown: true,
          columns: [
            { heading: 'Until', cell: ({ until }) => clockText(until) },
            ...measures.map(({ name }, at) => ({
              heading: name,
              figures: true,
              cell: ({ rates }: (typeof rows)[number]) => perSecond(rates[at] ?? 0),
            })),
          ],
        },
        rows,
      ),
    );
  }
}

function isShown({ key, rare = false }: Measure, series: Partial<AllSeries>): boolean {
  return !rare || (series[key]?.some((value) => value > 0) ?? false);
}
