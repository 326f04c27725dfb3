import { httpRequest } from '../process/http-client.js';
import type { WeirServer } from '../weir/weir.js';

/** Metrics of one server at one time: the value of each series, by its text. */
export interface Scrape {
  readonly values: ReadonlyMap<string, number>;
  /** `counter`, `gauge` or `histogram`, by metric name. */
  readonly types: ReadonlyMap<string, string>;
}

/** Returns the metric name of a series: `a_total` for `a_total{b="c"}`. */
export const nameOf = (series: string): string => /^[^{]*/.exec(series)?.[0] ?? '';

/** Returns whether a series only increases, as those of counters and histograms do. */
export function countsUp({ types }: Scrape, series: string): boolean {
  const name = nameOf(series);
  const type = types.get(name) ?? types.get(name.replace(/_(?:bucket|sum|count)$/, ''));
  return type === 'counter' || type === 'histogram';
}

/** Parses the text format of Prometheus as weir writes it, without timestamps. */
function readMetrics(text: string): Scrape {
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

/** Reads the metrics of a server; undefined if it does not answer. */
export async function scrape(server: Pick<WeirServer, 'httpPort'>): Promise<Scrape | undefined> {
  try {
    const { status, body } = await httpRequest(server.httpPort, '/metrics');
    return status === 200 ? readMetrics(body) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the sum of a metric's series whose text contains `part`. */
export function sumOf({ values }: Scrape, metric: string, part = ''): number {
  let sum = 0;
  for (const [series, value] of values) {
    if (nameOf(series) === metric && series.includes(part)) sum += value;
  }
  return sum;
}
