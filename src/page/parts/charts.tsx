import { useEffect, useId, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { AllSeries } from '../../admin/page/messages.js';
import { range, rates } from '../state.js';
import { slotsOf } from '../text/chart-range.js';
import { axisTop, groupAverages, peaksOf } from '../text/chart-shape.js';
import { perSecond } from '../text/numbers.js';
import { clockText, minuteText, spanText } from '../text/times.js';
import { Table } from './table.js';
import { Sign } from './texts.js';

const HEIGHT = 84;
/** Approximate maximum number of points. If there are more, only the highest of each group is drawn. */
const MAX_POINTS = 180;
/** Approximate maximum number of rows in the table of a chart. */
const MAX_ROWS = 12;

interface Measure {
  readonly key: keyof AllSeries;
  readonly name: string;
  readonly sign: string;
  /** Whether the chart is hidden while all values are 0. */
  readonly isRare?: boolean;
}

/** The measures that are recorded for each rule and for all rules together, then those for all rules only. */
const MEASURES: readonly Measure[] = [
  { key: 'ok', name: 'Allowed', sign: '●' },
  { key: 'denied', name: 'Denied', sign: '▲' },
  { key: 'would', name: 'Would be denied', sign: '◆' },
  { key: 'errors', name: 'Errors (calls)', sign: '✕' },
  { key: 'failure_allow', name: 'Allowed without the store', sign: '○', isRare: true },
  { key: 'failure_deny', name: 'Denied without the store', sign: '△', isRare: true },
  { key: 'failure_local', name: 'Decided in memory, without the store', sign: '◇', isRare: true },
];

interface ChartsProps {
  readonly series: Partial<AllSeries>;
  /** Length of a step in seconds, and end of the last step in seconds since the epoch. */
  readonly step: number;
  readonly ends: number;
  /** The subject of the charts for screen readers, such as `all rules`. */
  readonly subject: string;
}

/** One chart for each measure of the series, and a table of their numbers. */
export function Charts({ series, step, ends, subject }: ChartsProps) {
  const [isTable, setTable] = useState(false);
  const slots = slotsOf(range.value, step, rates.value.all?.ok.length ?? 0);
  const measures = MEASURES.filter(({ key, isRare }) =>
    isRare ? series[key]?.some((value) => value > 0) : series[key] !== undefined,
  );
  const perGroup = Math.max(1, Math.round(slots / MAX_ROWS));
  const columns = measures.map(({ key }) => groupAverages((series[key] ?? []).slice(-slots), perGroup));
  return (
    <>
      <div class="chart-row">
        {measures.map((measure) => (
          <Chart
            key={measure.key}
            measure={measure}
            values={(series[measure.key] ?? []).slice(-slots)}
            {...{ step, ends, slots, subject }}
          />
        ))}
      </div>
      <details onToggle={({ currentTarget }) => setTable(currentTarget.open)}>
        <summary>Show as table</summary>
        {isTable && (
          <Table
            caption={`Average per second for ${subject}, in steps of ${spanText(perGroup * step)}`}
            captionShown
            rows={(columns[0] ?? []).map((_, at) => at)}
            columns={[
              { heading: 'Until', cell: (at) => clockText(ends - at * perGroup * step) },
              ...measures.map(({ name }, column) => ({
                heading: name,
                figures: (at: number) => perSecond(columns[column]?.[at] ?? 0),
              })),
            ]}
          />
        )}
      </details>
    </>
  );
}

interface ChartProps extends Omit<ChartsProps, 'series'> {
  readonly measure: Measure;
  readonly values: readonly number[];
  /** Number of steps in the width of the chart. */
  readonly slots: number;
}

/** A chart of one measure, with its current rate. The color of its line is the color of the text around it. */
function Chart({ measure: { key, name, sign }, values, step, ends, slots, subject }: ChartProps) {
  const id = useId();
  const [pointed, setPointed] = useState<number>();
  const per = Math.max(1, Math.ceil(slots / MAX_POINTS));
  const points = peaksOf(values, step, ends, per);
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = useRef({ from: 0, ends: 1 });
  useEffect(() => {
    const { current: element } = place;
    if (element === null) return;
    const color = () => getComputedStyle(element).color;
    // A line needs two points.
    const isSingle = ({ data }: uPlot) => data[0].length === 1;
    const paleColor = () => `color-mix(in srgb, ${color()} 14%, transparent)`;
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        padding: [1, 0, 1, 0],
        legend: { show: false },
        axes: [{ show: false }, { show: false }],
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: {
          x: { range: () => [shown.current.from, shown.current.ends] },
          y: { range: (_plot, _least, most) => [0, axisTop(most ?? 0)] },
        },
        series: [{}, { stroke: color, fill: paleColor, width: 1.75, points: { show: isSingle } }],
        hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? undefined)] },
      },
      [[], []],
      element,
    );
    plot.current = made;
    const size = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    size.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => made.redraw();
    scheme.addEventListener('change', redraw);
    return () => {
      size.disconnect();
      scheme.removeEventListener('change', redraw);
      made.destroy();
    };
  }, []);
  useEffect(() => {
    shown.current = { from: ends - (slots - 1) * step, ends };
    plot.current?.setData(points);
  }, [points, step, ends, slots]);
  const peak = Math.max(0, ...values);
  const span = spanText(slots * step);
  const last = values.at(-1);
  const [time, rate] = points.map((all) => all[pointed ?? -1]);
  return (
    <div class={`chart ${key}`}>
      <p class="note">
        <Sign sign={sign} />
        {name}
      </p>
      <p class="chart-now">
        <span class="rate">{last === undefined ? '–' : perSecond(last)}</span>
        <span class="note">per second</span>
        <span class="peak note">peak {perSecond(peak)}</span>
      </p>
      <div class="plot" role="img" aria-labelledby={`${id} ${id}-is`}>
        <span class="axis-top" aria-hidden="true">
          {perSecond(axisTop(peak))}
        </span>
        <span class="spoken" id={id}>
          {name} per second for {subject}, last {span}
        </span>
        <span class="spoken" id={`${id}-is`}>
          {last === undefined ? 'No data yet.' : `Now ${perSecond(last)}, peak ${perSecond(peak)}.`}
        </span>
        <div class="line" ref={place} />
      </div>
      <p class="axis" aria-hidden="true">
        <span>{step > 0 && `${minuteText(ends - slots * step)}, ${span} ago`}</span>
        {rate !== undefined && (
          <span>
            {clockText(time ?? ends)}: {per > 1 && 'at most '}
            {perSecond(rate)} per second
          </span>
        )}
        <span>now{step > 0 && `, ${minuteText(ends)}`}</span>
      </p>
    </div>
  );
}
