import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { loadPolicies } from '../../../../src/config/files/load-policies.js';
import {
  areSmall,
  expandPaths,
  type RuntimeLayout,
  walkLayout,
} from '../../../../src/config/files/policy-paths.js';
import { type ConfigProblem, formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { runToCompletion } from '../../../../src/runtime/turns.js';
import { TempDir } from '../../../support/process/temp-dir.js';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
});

function layout(options: Partial<RuntimeLayout> = {}): RuntimeLayout {
  const setting = 'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY';
  return { directory: dir.join('root/config'), setting, beside: false, ignoreDotFiles: false, ...options };
}

/** Returns the files below `root` that are listed, and all problems. */
function listed(options: Partial<RuntimeLayout> = {}): { files: string[]; said: string[] } {
  const errors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const found = runToCompletion(expandPaths([layout(options)], errors, warnings));
  expect(found.every((path) => path.listed)).toBe(true);
  return {
    files: found.map(({ file }) => relative(dir.join('root'), file)),
    said: [...errors, ...warnings].map((problem) => formatProblem(problem).replaceAll(dir.path, '')),
  };
}

/** Runs `work` as a user who is subject to file modes. */
function asNobody<T>(work: () => T): T {
  if (process.geteuid?.() !== 0) return work();
  chmodSync(dir.path, 0o755);
  process.seteuid?.(65534);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
  }
}

/** Creates a volume as Kubernetes mounts a ConfigMap: files in a data directory, and links to them. */
function mountVolume(...names: readonly string[]): void {
  for (const name of names) dir.write(`root/config/..2024_01_31.1/${name}`, `domain: ${name.length}\n`);
  symlinkSync('..2024_01_31.1', dir.join('root/config/..data'));
  for (const top of new Set(names.map((name) => name.split('/', 1)[0] as string))) {
    symlinkSync(`..data/${top}`, dir.join('root/config', top));
  }
}

describe('the layout of the reference', () => {
  test('includes every file with any name, also in directories below, ordered by name', () => {
    for (const name of ['b.yaml', 'a', 'team/x/deep.txt', 'team/b.yml']) dir.write(`root/config/${name}`, '');
    mkdirSync(dir.join('root/config/empty'));
    dir.write('root/other/c.yaml', '');
    expect(listed()).toEqual({
      files: ['config/a', 'config/b.yaml', 'config/team/b.yml', 'config/team/x/deep.txt'],
      said: [],
    });
  });

  test('includes hidden files and directories, unless they are ignored', () => {
    for (const name of ['a.yaml', '.hidden.yaml', '.git/b.yaml', 'sub/.c.yaml'])
      dir.write(`root/config/${name}`, '');
    expect(listed().files).toEqual([
      'config/.git/b.yaml',
      'config/.hidden.yaml',
      'config/a.yaml',
      'config/sub/.c.yaml',
    ]);
    expect(listed({ ignoreDotFiles: true }).files).toEqual(['config/a.yaml']);
  });

  test.each([false, true])(
    'includes no file of a Kubernetes volume twice (RUNTIME_IGNOREDOTFILES=%s)',
    (ignoreDotFiles) => {
      mountVolume('a.yaml', 'team/b.yaml');
      expect(listed({ ignoreDotFiles })).toEqual({
        files: ['config/a.yaml', 'config/team/b.yaml'],
        said: [],
      });
      const { errors, policySet } = loadPolicies([layout({ ignoreDotFiles })]);
      expect(errors).toEqual([]);
      expect(policySet.domains.size).toBe(2);
    },
  );

  test('includes a link to a file, but not to a directory elsewhere, with a warning', () => {
    dir.write('elsewhere/a.yaml', '');
    mkdirSync(dir.join('root/config'), { recursive: true });
    symlinkSync('../../elsewhere/a.yaml', dir.join('root/config/a.yaml'));
    symlinkSync('../../elsewhere', dir.join('root/config/team'));
    symlinkSync('.', dir.join('root/config/loop'));
    const { files, said } = listed();
    expect(files).toEqual(['config/a.yaml']);
    expect(said).toEqual([
      '/root/config/loop: weir does not follow links to directories; move the directory here, or link to its files',
      '/root/config/team: weir does not follow links to directories; move the directory here, or link to its files',
    ]);
  });

  test('a broken link is a file that cannot be read', () => {
    mkdirSync(dir.join('root/config'), { recursive: true });
    symlinkSync('gone', dir.join('root/config/a.yaml'));
    expect(listed().files).toEqual(['config/a.yaml']);
    expect(loadPolicies([layout()]).errors.map(({ message }) => message)).toEqual([
      `"${dir.join('root/config/a.yaml')}" does not exist; check the path`,
    ]);
  });

  test('a link to itself is a file that cannot be read', () => {
    dir.write('root/config/good.yaml', 'domain: good\n');
    symlinkSync('loop.yaml', dir.join('root/config/loop.yaml'));
    for (const place of [layout(), dir.join('root/config')]) {
      const { policySet, errors } = loadPolicies([place]);
      expect([...policySet.domains.keys()]).toEqual(['good']);
      expect(errors.map(({ message }) => message)).toEqual([
        `"${dir.join('root/config/loop.yaml')}" cannot be read (ELOOP); check the path`,
      ]);
    }
  });

  test('an unreadable directory below does not affect the files next to it', () => {
    dir.write('root/config/good.yaml', 'domain: good\n');
    mkdirSync(dir.join('root/config/lost+found'), { mode: 0 });
    const { policySet, errors } = asNobody(() => loadPolicies([layout()]));
    expect([...policySet.domains.keys()]).toEqual(['good']);
    const path = dir.join('root/config/lost+found');
    expect(errors.map(formatProblem)).toEqual([
      `${path}: "${path}" cannot be read (permission denied); check its owner and mode`,
    ]);
  });

  test('files in an unreadable directory below keep their previous version', () => {
    const file = dir.write('root/config/team/a.yaml', 'domain: a\n');
    const before = loadPolicies([layout()]);
    chmodSync(dirname(file), 0);
    const { policySet, domains } = asNobody(() => loadPolicies([layout()], {}, before));
    chmodSync(dirname(file), 0o755);
    expect(policySet.domains.get('a')).toBe(before.policySet.domains.get('a'));
    expect(domains).toEqual([{ domain: 'a', files: [file], state: 'kept' }]);
  });

  test("includes files that begin with the directory's name and a dot, as with RUNTIME_WATCH_ROOT", () => {
    dir.write('root/config.yaml', '');
    dir.write('root/config.d/b.yaml', '');
    dir.write('root/configuration.yaml', '');
    expect(listed({ beside: true })).toEqual({ files: ['config.d/b.yaml', 'config.yaml'], said: [] });
    dir.write('root/config/a.yaml', '');
    expect(listed({ beside: true }).files).toEqual(['config/a.yaml', 'config.d/b.yaml', 'config.yaml']);
    expect(listed().files).toEqual(['config/a.yaml']);
  });
});

describe('a directory without policy files is a warning, or an error if configured', () => {
  test.each([
    [
      'of the reference',
      () => layout(),
      [],
      'the directory is empty; specify the directory that contains the policies',
    ],
    [
      'of CONFIG_PATH',
      () => layout().directory,
      [],
      'the directory is empty; specify the directory that contains the policies',
    ],
    [
      'with other files',
      () => layout().directory,
      ['README', 'a.yml/b.yaml', 'c', 'd', 'e', 'f.yaml.bak'],
      'the directory has no file that ends in .yaml or .yml, only README, a.yml/, c, d, e, and 1 more; ' +
        'specify the directory that contains the policies',
    ],
  ])('%s', (_name, place, files, message) => {
    mkdirSync(dir.join('root/config'), { recursive: true });
    for (const file of files) dir.write(`root/config/${file}`, '');
    const problem = { file: dir.join('root/config'), line: 0, column: 0, path: '', message };
    expect(loadPolicies([place()])).toMatchObject({ errors: [], warnings: [problem], files: [] });
    expect(loadPolicies([place()], { emptyIsError: true })).toMatchObject({
      errors: [problem],
      warnings: [],
    });
  });
});

test('listing many files pauses repeatedly, so that decisions can run in between', () => {
  for (let i = 0; i < 300; i++) dir.write(`root/config/${i}.yaml`, '');
  for (const place of [layout(), dir.join('root/config')]) {
    expect([...expandPaths([place], [])].length).toBeGreaterThanOrEqual(4);
  }
});

test('a layout with too many entries is not listed completely', () => {
  for (const name of ['a', 'b/c', 'b/d']) dir.write(`root/config/${name}`, '');
  expect(runToCompletion(walkLayout(layout(), 4)).files).toHaveLength(3);
  expect(() => runToCompletion(walkLayout(layout(), 3))).toThrow(
    'the directory contains more than 3 files and directories; specify the directory that contains the policies',
  );
});

test('policies are small if they are few regular files with at most the given bytes together', () => {
  const place = dir.join('root/config');
  dir.write('root/config/a.yaml', 'domain: a\n');
  dir.write('root/config/b.yaml', 'domain: b\n');
  dir.write('root/config/not-a-policy', 'x'.repeat(100));
  for (const places of [[place], [dir.join('root/config/a.yaml'), dir.join('root/config/b.yaml')]]) {
    expect(areSmall(places, 20)).toBe(true);
    expect(areSmall(places, 19)).toBe(false);
  }
  expect(areSmall([layout()], 20)).toBe(false);
  expect(areSmall([layout()], 120)).toBe(true);
  expect(areSmall(['/dev/null'], 100)).toBe(false);
  expect(areSmall([place, dir.join('missing')], 100)).toBe(false);
  symlinkSync('missing', dir.join('root/config/c.yaml'));
  expect(areSmall([place], 100)).toBe(false);
});

test('policies in many files are not small', () => {
  for (let i = 0; i < 100; i++) dir.write(`root/config/${i}.yaml`, '');
  expect(areSmall([dir.join('root/config')], 100)).toBe(false);
});
