import { httpRequest } from '../process/http-client.js';
import type { WeirServer } from '../weir/weir.js';

/** What `/metrics` of one server showed: the value of each series, by its text. */
export interface Scrape {
  readonly values: ReadonlyMap<string, number>;
  /** `counter`, `gauge` or `histogram`, by the name of the metric. */
  readonly types: ReadonlyMap<string, string>;
}

/** The name of the metric that a series is of: `a_total` for `a_total{b="c"}`. */
export const nameOf = (series: string): string => /^[^{]*/.exec(series)?.[0] ?? '';

/** Whether a series counts up, as those of counters and histograms do. */
export function countsUp({ types }: Scrape, series: string): boolean {
  const name = nameOf(series);
  const type = types.get(name) ?? types.get(name.replace(/_(?:bucket|sum|count)$/, ''));
  return type === 'counter' || type === 'histogram';
}

/** Reads the text format of Prometheus, as weir writes it: without times. */
export function readMetrics(text: string): Scrape {
  const values = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
    if (name !== undefined && type !== undefined) types.set(name, type);
    if (line === '' || line.startsWith('#')) continue;
    const end = line.lastIndexOf(' ');
    values.set(line.slice(0, end), Number(line.slice(end + 1)));
  }
  return { values, types };
}

/** What a server shows; undefined when it does not answer, as Prometheus would notice. */
export async function scrape(server: WeirServer): Promise<Scrape | undefined> {
  try {
    const { status, body } = await httpRequest(server.httpPort, '/metrics');
    return status === 200 ? readMetrics(body) : undefined;
  } catch {
    return undefined;
  }
}

/** The sum of the series of a metric whose text holds `part`. */
export function sumOf({ values }: Scrape, metric: string, part = ''): number {
  let sum = 0;
  for (const [series, value] of values) {
    if (nameOf(series) === metric && series.includes(part)) sum += value;
  }
  return sum;
}
