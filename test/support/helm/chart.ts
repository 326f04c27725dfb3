import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { diff } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { runToEnd } from '../process/processes.js';
import { repositoryRoot, toolPath } from '../process/tools.js';

/** Path of the chart. */
export const CHART = join(repositoryRoot, 'deploy/helm/weir');
const FOLDER = join(repositoryRoot, 'test/integration/deploy/helm');
const DEFAULTS = 'defaults';
/** Names of the value sets with a golden file. Together they render every object, with and without every option. */
export const GOLDEN = [DEFAULTS, 'everything', 'sentinel', 'xds'];

/** Names of the value sets in test/integration/deploy/helm/values. */
export const valueSets = (): readonly string[] =>
  readdirSync(join(FOLDER, 'values')).map((name) => basename(name, '.yaml'));

export const valuesFile = (name: string): string => join(FOLDER, 'values', `${name}.yaml`);
export const goldenFile = (name: string): string =>
  join(FOLDER, 'golden', name === DEFAULTS ? 'defaults.yaml' : `${name}.diff`);

/** One Kubernetes object, untyped: a test that reads a missing field fails. */
export type Manifest = ReturnType<typeof JSON.parse>;

/** Exit and output of helm. */
export interface Rendered {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs helm without any configuration of the user. */
export function helm(...args: readonly string[]): Promise<Rendered> {
  return runToEnd(toolPath('helm'), args, { bareEnvironment: true });
}

/** Runs `helm template` for a release `weir` in the namespace `limits`. */
export const template = (args: readonly string[], chart = CHART): Promise<Rendered> =>
  helm('template', 'weir', chart, '--namespace', 'limits', ...args);

/** Parses a text of several documents into objects. */
export const objectsOf = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((object) => object !== null);

/** Renders a value set, without the chart's version. Throws helm's error if rendering fails. */
export async function renderAll(name: string): Promise<string> {
  const { code, stdout, stderr } = await template(['--values', valuesFile(name)]);
  if (code !== 0) throw new Error(`helm template with ${name}.yaml: ${stderr}`);
  const { version } = objectsOf(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))[0];
  // Versions of Helm differ in the empty lines between objects.
  return stdout.replace(/\n+---\n/g, '\n---\n').replaceAll(version, 'VERSION');
}

/**
 * Returns the golden text of a value set: everything for the defaults, and for other sets only the differences from the
 * defaults, object by object. The rules of the alerts are left out, because they equal those of deploy/prometheus/.
 */
export async function render(name: string): Promise<string> {
  const rules = /^(kind: PrometheusRule\n(?:.+\n)*?spec:\n)(?:(?: {2}.*)?\n)*/m;
  const text = (await renderAll(name)).replace(rules, '$1  groups: []\n');
  if (name === DEFAULTS) return text;
  const usual = bySource(await renderAll(DEFAULTS));
  const own = bySource(text);
  const changed = [...own].filter(([source, object]) => object !== usual.get(source));
  const gone = [...usual.keys()].filter((source) => !own.has(source));
  return [
    ...changed.map(([source, object]) => `---\n${shown(object, usual.get(source))}`),
    ...gone.map((source) => `---\n${source}\n- all of it\n`),
  ].join('');
}

/** Splits the output of helm into objects, by template and index within the template. */
function bySource(text: string): Map<string, string> {
  const objects = new Map<string, string>();
  for (const object of text.split(/^---\n/m).filter((one) => one !== '')) {
    let source = object.slice(0, object.indexOf('\n'));
    while (objects.has(source)) source += ', next';
    objects.set(source, object);
  }
  return objects;
}

/** Returns an object in full, or only the changed lines with their neighbours if that is shorter. */
function shown(object: string, usual = ''): string {
  const entries = diff(usual.trimEnd().split('\n'), object.trimEnd().split('\n'));
  const lines: string[] = [entries[0]?.[1] ?? ''];
  let last = 0;
  entries.forEach(([change, line], at) => {
    const near = entries.slice(Math.max(0, at - 1), at + 2).some(([other]) => other !== 0);
    if (at === 0 || !near) return;
    if (at > last + 1) lines.push('@@');
    lines.push(`${change === 0 ? ' ' : change > 0 ? '-' : '+'}${line}`);
    last = at;
  });
  const changes = `${lines.join('\n')}\n`;
  return changes.length < object.length * 0.7 ? changes : object;
}
