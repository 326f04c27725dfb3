/* Tests `npm test` itself: it runs the named tests, builds what is not built, and ends completely on a signal. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { pageText } from '../support/docs/pages.js';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

interface Member {
  readonly pid: number;
  readonly command: string;
}

/** Returns the processes of a group that have not ended. */
function members(group: number): Member[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        // The name, which can contain any character, is in parentheses; state, parent and group follow (proc(5)).
        const [state, , processGroup] = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        if (Number(processGroup) !== group || state === 'Z') return [];
        return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8') }];
      } catch {
        return [];
      }
    });
}

/** Runs `code`, which is JavaScript with a module of .ci/ as `ci`, and returns its output. */
async function askScript(module: string, code: string): Promise<string> {
  const url = pathToFileURL(join(repositoryRoot, '.ci', module));
  const script = `const ci = await import('${url}'); process.stdout.write(${code})`;
  const ended = await runToEnd(process.execPath, ['--input-type=module', '-e', script]);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  return ended.stdout;
}

interface Plan {
  readonly tiers: readonly string[];
  readonly tools: readonly string[];
  readonly args: readonly string[];
}

/** Returns the plan that `npm test -- …` makes for each list of words. */
async function plansOf(lists: readonly (readonly string[])[]): Promise<readonly Plan[]> {
  const code = `JSON.stringify(${JSON.stringify(lists)}.map((words) => ci.planOf(words)))`;
  return JSON.parse(await askScript('test.mjs', code)) as Plan[];
}

/** Returns the test files that jest finds for each plan. One process lists all of them. */
async function filesOf(plans: readonly Plan[]): Promise<readonly (readonly string[])[]> {
  const lists = JSON.stringify(plans.map(({ args }) => [...args, '--listTests']));
  const script = `import { run } from 'jest';
    for (const args of ${lists}) { await run(args); console.log('end of a list'); }`;
  const { stdout } = await runToEnd(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: repositoryRoot,
  });
  const built = join(repositoryRoot, 'build/test');
  return stdout
    .split('end of a list\n')
    .slice(0, -1)
    .map((list) => {
      const files = list.split('\n').filter((line) => line.endsWith('.test.js'));
      return files.map((file) => relative(built, file).replace(/\.js$/, '.ts')).sort();
    });
}

/** Arguments of the commands `npm test -- …` on the pages for contributors. */
const shown = ['docs/internals/testing.md', 'docs/CONTRIBUTING.md'].flatMap((page) =>
  [...pageText(page).matchAll(/\bnpm test -- (.+?)(?: +#|`|$)/gm)].map(([, words = '']) => words.trim()),
);
/** For each of these commands: where all of its files are, their minimum number, and a tool that it needs. */
const RUNS: Readonly<Record<string, readonly [where: RegExp, atLeast: number, tool?: string]>> = {
  '--selectProjects unit': [/^unit\//, 100],
  'test/unit/limiter/rate.test.ts': [/^unit\/limiter\/rate\.test\.ts$/, 1],
  'test/e2e/priorities': [/^e2e\/priorities/, 1, 'envoy'],
  '--selectProjects unit test/unit/limiter/rate.test.ts': [/^unit\/limiter\/rate\.test\.ts$/, 1],
  "--selectProjects integration -t 'drain'": [/^integration\//, 50, 'redis-server'],
  '--selectProjects conformance h2spec': [/^conformance\/h2spec\//, 1, 'h2spec'],
  '--selectProjects property': [/^property\//, 20, 'redis-server'],
  '--selectProjects chaos': [/^chaos\//, 2, 'valkey-server'],
  '--selectProjects attack': [/^attack\//, 4, 'envoy'],
};

describe('npm test with arguments', () => {
  test('covers every form that the pages show', () => {
    expect([...new Set(shown)].sort()).toEqual(Object.keys(RUNS).sort());
  });

  test('runs the named tests, with their tools', async () => {
    const lines = Object.keys(RUNS);
    const plans = await plansOf(lines.map((line) => line.replaceAll("'", '').split(' ')));
    const found = await filesOf(plans);
    expect(found).toHaveLength(lines.length);
    for (const [i, plan] of plans.entries()) {
      const [where, atLeast, tool] = RUNS[lines[i] ?? '']!;
      const files = found[i] ?? [];
      expect([lines[i], files.filter((file) => !where.test(file))]).toEqual([lines[i], []]);
      expect(files.length).toBeGreaterThanOrEqual(atLeast);
      if (tool === undefined) expect(plan.tools).toEqual([]);
      else expect(plan.tools).toContain(tool);
    }
  });

  test('selects a tier by the paths of its tests', async () => {
    const rate = 'test/unit/limiter/rate.test.ts';
    const ofOneFile = [
      ['--selectProjects=unit', join(repositoryRoot, rate)],
      [`./${rate}`],
      ['--testPathPatterns=unit/limiter/rate'],
    ];
    const others = [
      ['test/unit/limiter', '--maxWorkers', '2'],
      ['--selectProjects', 'unit', `${repositoryRoot}/./test/unit/limiter/`],
      ['--testPathPatterns', 'unit/limiter/rate', 'unit/limiter/calendar'],
      ['test/unit'],
    ];
    const plans = await plansOf([...ofOneFile, ...others]);
    for (const { tiers, tools } of plans) expect({ tiers, tools }).toEqual({ tiers: ['unit'], tools: [] });
    const found = await filesOf(plans.slice(0, ofOneFile.length + 2));
    expect(found.slice(0, ofOneFile.length)).toEqual(ofOneFile.map(() => ['unit/limiter/rate.test.ts']));
    const folder = found.at(-1) ?? [];
    expect(folder.filter((file) => !file.startsWith('unit/limiter/'))).toEqual([]);
    expect(folder.length).toBeGreaterThanOrEqual(2);
  });

  test('accepts a name of tests that begins with a slash', async () => {
    const [plan] = await plansOf([['-t', '/metrics']]);
    expect(plan?.args).toEqual(['-t', '/metrics']);
  });

  test('runs one file to its end', async () => {
    const words = ['test', '--', 'test/unit/limiter/rate.test.ts'];
    const ended = await runToEnd('npm', words, { cwd: repositoryRoot });
    expect(ended.stdout).toMatch(/\n[1-9]\d* passed, 0 failed\n$/);
    expect(ended.code).toBe(0);
  });

  test('lists the tiers if one is misspelt', async () => {
    const words = ['test', '--', '--selectProjects', 'unti'];
    const ended = await runToEnd('npm', words, { cwd: repositoryRoot });
    expect(ended.code).toBe(1);
    expect(ended.stdout).toContain("--selectProjects: 'unti' is not a tier; the tiers are unit, property, ");
  });
});

test('a script runs as the program even if its path contains a link', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-link-'));
  try {
    symlinkSync(join(repositoryRoot, '.ci'), join(folder, 'scripts'));
    const ended = await runToEnd(process.execPath, [join(folder, 'scripts/node.mjs')]);
    expect(ended).toMatchObject({ code: 0, stdout: `${process.execPath}\n` });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('npx jest runs the tests of the manual without npm test', async () => {
  expect(pageText('docs/internals/testing.md')).toContain('npm run build && npx jest --selectProjects unit ');
  const words = ['jest', '--selectProjects', 'unit', '--testPathPatterns', 'unit/limiter/rate'];
  const ended = await runToEnd('npx', words, { cwd: repositoryRoot });
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining('1 passed, 1 total') });
});

// Otherwise, a run on another Node.js would build again and disturb running tests.
test('the sources have the same digest on every Node.js', async () => {
  const digest = await askScript('prepare.mjs', 'ci.sourceDigest()');
  expect(digest).toBe(readFileSync(join(repositoryRoot, 'build/.sources'), 'utf8'));
});

test('the test files that start first exist', async () => {
  const first = JSON.parse(
    await askScript('jest-sequencer.cjs', 'JSON.stringify(ci.default.FIRST)'),
  ) as string[];
  expect(first.filter((file) => !existsSync(join(repositoryRoot, 'build/test', file)))).toEqual([]);
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s to its group ends a run with servers within two seconds, and leaves no process',
  async (signal) => {
    // This tier needs no optional tool.
    const args = ['.ci/test.mjs', '--selectProjects', 'attack', '--testPathPatterns', 'through-envoy'];
    const run = spawn(process.execPath, args, {
      cwd: repositoryRoot,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [run.stdout, run.stderr]) stream.on('data', (text) => (said += text));
    const group = run.pid as number;
    const code = new Promise((resolve) => run.once('close', resolve));
    try {
      await waitFor('a server of a test', () =>
        members(group).some(({ command }) => /main\.js\0serve/.test(command)),
      );
      process.kill(-group, signal);
      await waitFor('all to be gone', () => members(group).length === 0);
      expect(await code).toBe(signal === 'SIGINT' ? 130 : 143);
      expect(said).toContain(`stopped by ${signal}`);
      expect(said).not.toContain('passed, ');
    } finally {
      for (const { pid } of members(group)) process.kill(pid, 'SIGKILL');
    }
  },
);
