import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { runToEnd } from '../process/processes.js';
import { repositoryRoot, toolPath } from '../process/tools.js';

/** The chart, and the values that tests render it with. */
export const CHART = join(repositoryRoot, 'deploy/helm/weir');
const FOLDER = join(repositoryRoot, 'test/integration/deploy/helm');
const GOLDEN = join(FOLDER, 'golden');

/** Names of the value sets in test/integration/deploy/helm/values. */
export const valueSets = (): readonly string[] =>
  readdirSync(join(FOLDER, 'values')).map((name) => basename(name, '.yaml'));

export const valuesFile = (name: string): string => join(FOLDER, 'values', `${name}.yaml`);
export const goldenFile = (name: string): string => join(GOLDEN, `${name}.yaml`);

/** One Kubernetes object, untyped: a test that looks for what is not there fails. */
export type Manifest = ReturnType<typeof JSON.parse>;

/** How helm ended, and what it printed. */
export interface Rendered {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs helm; it reads and writes no configuration of the user. */
export function helm(...args: readonly string[]): Promise<Rendered> {
  return runToEnd(toolPath('helm'), args, { bareEnvironment: true });
}

/** `helm template` of a release `weir` in the namespace `limits`. */
export const template = (args: readonly string[], chart = CHART): Promise<Rendered> =>
  helm('template', 'weir', chart, '--namespace', 'limits', ...args);

/** The objects of a text of several documents. */
export const objectsOf = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((object) => object !== null);

/** What helm makes of a value set, without the chart's version; throws with what helm said where it fails. */
async function renderWhole(name: string): Promise<string> {
  const { code, stdout, stderr } = await template(['--values', valuesFile(name)]);
  if (code !== 0) throw new Error(`helm template with ${name}.yaml: ${stderr}`);
  const { version } = objectsOf(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))[0];
  return stdout.replaceAll(version, 'VERSION');
}

const DEFAULTS = 'defaults';

/**
 * What golden/ holds of a value set: without the objects that are those of the defaults, and without the rules of the
 * alerts, which are those of deploy/prometheus/.
 */
export async function render(name: string): Promise<string> {
  const rules = /^(kind: PrometheusRule\n(?:.+\n)*?spec:\n)(?:(?: {2}.*)?\n)*/m;
  const text = (await renderWhole(name)).replace(rules, '$1  groups: []\n');
  if (name === DEFAULTS) return text;
  const objects = (whole: string): string[] => whole.split(/^---\n/m).filter((one) => one !== '');
  const usual = new Set(objects(await renderWhole(DEFAULTS)));
  const own = objects(text).filter((one) => !usual.has(one));
  return own.map((one) => `---\n${one}`).join('');
}
