import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { runToEnd } from '../process/processes.js';
import { repositoryRoot } from '../process/tools.js';
import type { Stage } from './dockerfile.js';

export const STEP_TIMEOUT_MS = 240_000;

/** Paths that .dockerignore lets through to the builder. */
const sent = readFileSync(join(repositoryRoot, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1));

/**
 * Returns the place of a path of a stage below `top`: the root of the stage is a separate folder, and relative paths
 * start at WORKDIR.
 */
export function inside(top: string, stage: Stage, path: string): string {
  const workdir = stage.instructions.find(({ name }) => name === 'WORKDIR')?.rest ?? '/';
  return path.startsWith('/') ? join(top, stage.name, path) : join(top, stage.name, workdir, path);
}

function copy(top: string, stages: readonly Stage[], stage: Stage, rest: string): void {
  const words = rest.split(/\s+/);
  const from = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined;
  const target = words.pop() ?? '';
  const origin = stages.find(({ name }) => name === from);
  for (const source of words) {
    if (origin === undefined && !sent.some((path) => source === path || source.startsWith(`${path}/`))) {
      throw new Error(`.dockerignore keeps ${source} from the builder`);
    }
    const path = origin === undefined ? join(repositoryRoot, source) : inside(top, origin, source);
    const into = inside(top, stage, target);
    const to = target.endsWith('/') ? join(into, basename(source)) : into;
    mkdirSync(dirname(to), { recursive: true });
    cpSync(path, to, { recursive: true, verbatimSymlinks: true });
  }
}

/** Returns the PATH of a stage's commands: its own /bin, this Node.js, and the programs of the machine. */
export const pathOf = (top: string, stage: Stage): string =>
  [inside(top, stage, '/bin'), dirname(process.execPath), process.env['PATH']].join(delimiter);

/**
 * Runs the COPY and RUN instructions of a Dockerfile without a container engine, in folders below `top`. The base image
 * is missing: commands run with the programs of this machine.
 */
export async function buildStages(top: string, stages: readonly Stage[]): Promise<void> {
  for (const stage of stages) {
    mkdirSync(inside(top, stage, '.'), { recursive: true });
    for (const { name, rest } of stage.instructions) {
      if (name === 'COPY') copy(top, stages, stage, rest);
      if (name !== 'RUN') continue;
      const ended = await runToEnd('sh', ['-c', rest], {
        cwd: inside(top, stage, '.'),
        env: { PATH: pathOf(top, stage) },
        timeoutMs: STEP_TIMEOUT_MS,
      });
      if (ended.code !== 0)
        throw new Error(`RUN ${rest} ended with ${ended.code}:\n${ended.stdout}${ended.stderr}`);
    }
  }
}
