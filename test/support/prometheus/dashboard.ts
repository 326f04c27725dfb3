import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../process/tools.js';

/** Folder of the Grafana dashboards. */
export const DASHBOARDS = join(repositoryRoot, 'deploy/grafana');

export interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: { readonly type: string; readonly uid: string };
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } };
  readonly targets?: readonly Target[];
}

export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly allValue?: string;
  readonly query: string | { readonly query: string };
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
}

/** Returns every dashboard that weir ships, by file name. */
export function shippedDashboards(): ReadonlyMap<string, Dashboard> {
  const files = readdirSync(DASHBOARDS).filter((name) => name.endsWith('.json'));
  return new Map(
    files.map((name) => [name, JSON.parse(readFileSync(join(DASHBOARDS, name), 'utf8')) as Dashboard]),
  );
}

/** Returns the query of a panel as Grafana sends it when every variable is set to All. */
export function withAll(query: string, { templating }: Dashboard, rateInterval: string): string {
  let text = query.replaceAll('$__rate_interval', rateInterval);
  for (const { name, allValue = '' } of templating.list) text = text.replaceAll(`$${name}`, allValue);
  return text;
}
