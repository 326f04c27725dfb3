import { type ChildProcess, spawn } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { transformSync } from 'esbuild';
import { repositoryRoot } from '../support/process/tools.js';
import type { FileResult } from './reporter.js';

/** Folders that are linked instead of copied, because no test changes them. */
const LINKED_FOLDERS = ['node_modules', '.tools'];
/** Heap limit of a run of jest, because a mutated loop may allocate memory without end. */
const HEAP_MB = 1536;
const MAX_RESIDENT_BYTES = 3 * 2 ** 30;
const PAGE_BYTES = 4096;
const CHECK_EVERY_MS = 500;
const TEST_TIMEOUT_MS = 10_000;

export interface JestRun {
  /** Whether jest was stopped because it exceeded its time or memory limit. */
  readonly stopped: boolean;
  /** Results of the test files; undefined if jest ended without results. */
  readonly files: readonly FileResult[] | undefined;
}

function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0; // The process has ended, or this system has no /proc.
  }
}

/** A copy of the checkout and its build, for mutating source files and running tests. */
export class Workspace {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'weir-mutation-')));
  private child: ChildProcess | undefined;

  constructor() {
    for (const name of readdirSync(repositoryRoot)) {
      if (LINKED_FOLDERS.includes(name)) symlinkSync(join(repositoryRoot, name), join(this.folder, name));
      else if (name !== '.git')
        cpSync(join(repositoryRoot, name), join(this.folder, name), { recursive: true });
    }
  }

  private compiledPath(path: string): string {
    return join(this.folder, 'build', path.replace(/\.ts$/, '.js'));
  }

  /** Compiles `source` as the file `path`, without type checks. */
  compile(path: string, source: string): void {
    const { code } = transformSync(source, { loader: 'ts', format: 'cjs', target: 'es2023' });
    writeFileSync(this.compiledPath(path), code);
  }

  /** Runs test files in the given order, for at most `limitMs`. `args` are additional arguments of jest. */
  async jest(tests: readonly string[], limitMs: number, args: readonly string[]): Promise<JestRun> {
    const out = join(this.folder, 'results.json');
    rmSync(out, { force: true });
    const config = {
      rootDir: this.folder,
      roots: ['<rootDir>/build/test'],
      testMatch: ['**/*.test.js'],
      transform: {},
      testEnvironment: '<rootDir>/.ci/test-environment.cjs',
      reporters: [[join(__dirname, 'reporter.js'), { out }]],
      testSequencer: join(__dirname, 'keep-order-sequencer.js'),
      modulePathIgnorePatterns: ['<rootDir>/build/package.json'],
      cacheDirectory: '<rootDir>/.jest-cache',
      testTimeout: TEST_TIMEOUT_MS,
    };
    const jest = [`--max-old-space-size=${HEAP_MB}`, 'node_modules/jest/bin/jest.js', '--forceExit'];
    const paths = tests.map((test) => this.compiledPath(test));
    const child = spawn(
      process.execPath,
      [...jest, '--config', JSON.stringify(config), ...args, '--runTestsByPath', ...paths],
      { cwd: this.folder, stdio: 'ignore', detached: true },
    );
    this.child = child;
    const endsAt = performance.now() + limitMs;
    let stopped = false;
    const watch = setInterval(() => {
      if (performance.now() < endsAt && residentBytes(child.pid ?? 0) < MAX_RESIDENT_BYTES) return;
      stopped = true;
      this.stop();
    }, CHECK_EVERY_MS);
    await new Promise((resolve) => child.once('close', resolve).once('error', resolve));
    clearInterval(watch);
    this.stop(); // Ends processes that tests did not end.
    this.child = undefined;
    return { stopped, files: stopped ? undefined : this.results(out) };
  }

  private results(out: string): FileResult[] | undefined {
    let text: string;
    try {
      text = readFileSync(out, 'utf8');
    } catch {
      return undefined; // Jest was ended by a test, or ran out of memory.
    }
    return (JSON.parse(text) as FileResult[]).map((file) => ({
      ...file,
      path: relative(join(this.folder, 'build'), file.path).replace(/\.js$/, '.ts'),
    }));
  }

  private stop(): void {
    if (this.child?.pid === undefined) return;
    try {
      process.kill(-this.child.pid, 'SIGKILL');
    } catch {} // The group has ended.
  }

  remove(): void {
    this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
