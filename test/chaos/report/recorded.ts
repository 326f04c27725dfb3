import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../support/process/tools.js';
import type { Spread } from '../scene/lateness.js';
import type { TopologyName } from '../topology/topology.js';
import type { Row } from './row.js';

const FILE = join(repositoryRoot, 'test/chaos/recorded.json');

/** A run that is kept, for the table in docs/reference/faults.md. */
export interface Recorded {
  readonly node: string;
  readonly seed: number;
  readonly minutes: number;
  readonly topologies: readonly {
    readonly name: TopologyName;
    readonly baseline: Spread;
    readonly rows: readonly Row[];
  }[];
}

/** What test/chaos/recorded.json holds. */
export function readRecorded(): Recorded {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Recorded;
}

/** Keeps a run in test/chaos/recorded.json, with numbers as precise as they mean something. */
export function writeRecorded(recorded: Recorded): void {
  const rounded = (_key: string, value: unknown): unknown =>
    typeof value === 'number' ? Number(value.toFixed(2)) : value;
  writeFileSync(FILE, `${JSON.stringify(recorded, rounded, 2)}\n`);
}
