/* Draws the charts of a report by `weir replay --html`, in the colors of the style sheet. */
import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  type ChartConfiguration,
  Filler,
  Legend,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  type ScaleOptionsByType,
  Tooltip,
} from 'chart.js';
import type {
  AffectedChart,
  ChartData,
  DenialsChart,
  TimeAxis,
  UseChart,
} from '../../replay/report/html/chart-data.js';

Chart.register(
  ...[BarController, BarElement, CategoryScale, Filler, Legend, LinearScale, LineController],
  ...[LineElement, PointElement, Tooltip],
);

interface Colors {
  readonly text: string;
  readonly grid: string;
  readonly before: string;
  readonly after: string;
  readonly afterArea: string;
  readonly within: string;
}

function currentColors(): Colors {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    text: color('muted'),
    grid: color('line'),
    before: color('before'),
    after: color('after'),
    afterArea: color('after-area'),
    within: color('within'),
  };
}

function countAxis(colors: Colors, title: string) {
  return {
    beginAtZero: true,
    grid: { color: colors.grid },
    border: { display: false },
    ticks: { color: colors.text, precision: 0, maxTicksLimit: 6 },
    title: { display: true, text: title, color: colors.text },
  };
}

function timeScale({ seconds, ticks }: TimeAxis, colors: Colors) {
  return {
    type: 'linear' as const,
    min: 0,
    max: seconds,
    grid: { color: colors.grid },
    border: { color: colors.grid },
    ticks: { color: colors.text, maxRotation: 0, autoSkip: true, autoSkipPadding: 12 },
    afterBuildTicks: (axis: { ticks: unknown[] }) => {
      axis.ticks = ticks.map(({ at, label }) => ({ value: at, label }));
    },
    afterTickToLabelConversion: (axis: { ticks: { value: number; label?: unknown }[] }) => {
      for (const tick of axis.ticks) tick.label = ticks.find(({ at }) => at === tick.value)?.label ?? '';
    },
  } satisfies Partial<Record<keyof ScaleOptionsByType<'linear'>, unknown>>;
}

function denials(data: DenialsChart, colors: Colors): ChartConfiguration<'line'> {
  const points = (values: readonly number[]) => {
    const all = values.map((y, at) => ({ x: at * data.step, y }));
    // A step lasts until the next point, so the last step needs an end.
    return [...all, { x: data.seconds, y: values.at(-1) ?? 0 }];
  };
  const line = { stepped: 'before' as const, pointRadius: 0, pointHitRadius: 8, borderWidth: 2 };
  return {
    type: 'line',
    data: {
      datasets: [
        {
          ...line,
          label: 'Before the change',
          data: points(data.before),
          borderColor: colors.before,
          backgroundColor: colors.before,
          borderDash: [5, 3],
        },
        {
          ...line,
          label: 'After the change',
          data: points(data.after),
          borderColor: colors.after,
          backgroundColor: colors.afterArea,
          fill: true,
        },
      ],
    },
    options: {
      interaction: { mode: 'index', intersect: false },
      scales: { x: timeScale(data, colors), y: countAxis(colors, 'Denied requests') },
      plugins: {
        legend: { labels: { color: colors.text, boxWidth: 24, boxHeight: 2 } },
        tooltip: { callbacks: { title: ([item]) => data.labels[item?.dataIndex ?? 0] ?? '' } },
      },
    },
  };
}

function affected(data: AffectedChart, colors: Colors): ChartConfiguration<'bar', unknown[], string> {
  // A period is at least this long, so that it is visible.
  const least = data.seconds / 300;
  return {
    type: 'bar',
    data: {
      labels: [...data.names],
      datasets: [
        {
          data: data.periods.map(([index, start, end]) => ({
            y: data.names[index],
            x: [start, Math.max(end, start + least)],
          })),
          backgroundColor: colors.after,
          barPercentage: 0.7,
          categoryPercentage: 1,
          borderSkipped: false,
        },
      ],
    },
    options: {
      indexAxis: 'y',
      scales: {
        x: timeScale(data, colors),
        y: {
          grid: { display: false },
          border: { display: false },
          ticks: {
            color: colors.text,
            autoSkip: false,
            callback: (_, at) => shortened(data.names[at] ?? ''),
          },
        },
      },
      plugins: {
        legend: { display: false },
        tooltip: {
          callbacks: {
            title: ([item]) => data.names[data.periods[item?.dataIndex ?? 0]?.[0] ?? 0] ?? '',
            label: ({ dataIndex }) => data.labels[dataIndex] ?? '',
          },
        },
      },
    },
  };
}

function shortened(name: string): string {
  const most = window.innerWidth < 600 ? 14 : 24;
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

function use(data: UseChart, colors: Colors): ChartConfiguration<'bar', (number | null)[], string> {
  const within = data.labels.length - data.over;
  return {
    type: 'bar',
    data: {
      labels: [...data.labels],
      datasets: [
        {
          // An empty step has no bar; others have one that is visible.
          data: data.callers.map((count) => (count === 0 ? null : count)),
          backgroundColor: data.labels.map((_, at) => (at < within ? colors.within : colors.after)),
          minBarLength: 3,
          barPercentage: 1,
          categoryPercentage: 0.9,
        },
      ],
    },
    options: {
      scales: {
        x: {
          grid: { display: false },
          border: { color: colors.grid },
          ticks: { color: colors.text, maxRotation: 0, callback: (_, at) => data.ends[at] },
          title: { display: true, text: 'Largest part of the limit needed, up to', color: colors.text },
        },
        y: countAxis(colors, 'Callers'),
      },
      plugins: { legend: { display: false } },
    },
  };
}

function canvasOf(id: string): HTMLCanvasElement | undefined {
  const element = document.getElementById(id);
  return element instanceof HTMLCanvasElement ? element : undefined;
}

let drawn: Chart[] = [];

function draw(data: ChartData): void {
  const colors = currentColors();
  for (const chart of drawn) chart.destroy();
  drawn = [];
  const show = (id: string, configuration: unknown): void => {
    const canvas = canvasOf(id);
    if (canvas !== undefined) drawn.push(new Chart(canvas, configuration as ChartConfiguration));
  };
  show('denials', denials(data.denials, colors));
  if (data.affected !== undefined) show('affected', affected(data.affected, colors));
  for (const [at, chart] of data.use.entries()) show(`use-${at}`, use(chart, colors));
}

Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
const data = JSON.parse(document.getElementById('chart-data')?.textContent ?? '') as ChartData;
draw(data);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw(data));
