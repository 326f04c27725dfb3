/* Runs .ci/release.mjs in a separate repository: this checkout without its tests, so that little is compiled. */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';

const COPIED = [
  ...['.ci', 'CHANGELOG.md', 'LICENSE', 'README.md', 'deploy', 'docs', 'package-lock.json', 'package.json'],
  ...['proto', 'src', 'tsconfig.json', '.gitignore', '.dockerignore'],
];
const ENTRIES = `### Added

- Something new.

### Changed

### Fixed

- Something that was
  wrong.
`;
const CHART = 'deploy/helm/weir/Chart.yaml';
const helm = optionalToolPath('helm');
const current = (
  JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { version: string }
).version;
const [major = 0, minor = 0, patch = 0] = current.split(/[.-]/).map(Number);
// After a candidate of a minor version, the next minor version is that version.
const next = current.includes('-') && patch === 0 ? `${major}.${minor}.0` : `${major}.${minor + 1}.0`;

/** The newest version with a section in the changelog. */
const released = /^## \[(\d[^\]]*)\]/m.exec(readFileSync(join(repositoryRoot, 'CHANGELOG.md'), 'utf8'))?.[1];

const folder = new TempDir();
const hasChart = existsSync(join(repositoryRoot, CHART)) && helm !== undefined;

async function git(...args: string[]): Promise<string> {
  // The developer's own settings (signing, hooks) must have no effect.
  const env = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
  const { code, stdout, stderr } = await runToEnd('git', args, { cwd: folder.path, env });
  if (code !== 0) throw new Error(`git ${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout.trimEnd();
}

function release(...args: string[]) {
  const without = hasChart ? [] : ['--without-chart'];
  return runToEnd(process.execPath, ['.ci/release.mjs', ...args, ...without], {
    cwd: folder.path,
    env: { GIT_CONFIG_GLOBAL: '/dev/null', ...(helm !== undefined && { WEIR_TEST_HELM: helm }) },
  });
}

const read = (...path: string[]) => readFileSync(folder.join(...path), 'utf8');

/** Returns everything that a release could change. */
async function state(): Promise<string> {
  const dist = existsSync(folder.join('dist')) ? readdirSync(folder.join('dist')) : [];
  return [await git('rev-parse', 'HEAD'), await git('status', '--porcelain'), await git('tag'), dist].join(
    '|',
  );
}

beforeAll(async () => {
  for (const name of COPIED) {
    const source = join(repositoryRoot, name);
    if (!existsSync(source)) continue;
    const isCopied = (path: string) => !/\/deploy\/demo(\/|$)/.test(path);
    cpSync(source, folder.join(name), { recursive: true, filter: isCopied });
  }
  symlinkSync(join(repositoryRoot, 'node_modules'), folder.join('node_modules'));
  const changelog = read('CHANGELOG.md');
  const unreleased = /## \[Unreleased\]\n[\s\S]*?(?=## \[)/;
  expect(changelog).toMatch(unreleased);
  folder.write('CHANGELOG.md', changelog.replace(unreleased, `## [Unreleased]\n\n${ENTRIES}\n`));
  const manifest = JSON.parse(read('package.json')) as object;
  const withRepository = { ...manifest, repository: 'git+https://example.com/weir.git' };
  folder.write('package.json', `${JSON.stringify(withRepository, undefined, 2)}\n`);
  folder.write(
    'docs/install.md',
    `docker run weir:${current} and weir-${current}.tgz, not other:${current}\n`,
  );
  await git('init', '--quiet', '--initial-branch', 'main');
  await git('config', 'user.name', 'Somebody');
  await git('config', 'user.email', 'somebody@example.com');
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'Everything');
});

beforeEach(async () => {
  await git('switch', '--quiet', 'main');
});

test.each([
  ['without a version', [], 'specify one version'],
  [
    'with an invalid word',
    ['big'],
    `big is not a valid version; use major, minor, patch or a version from ${current} on`,
  ],
  [
    'with an earlier version',
    ['0.0.1'],
    `0.0.1 is not a valid version; use major, minor, patch or a version from ${current} on`,
  ],
  ['with two versions', ['minor', 'patch'], 'specify one version'],
  ['with an unknown option', ['minor', '--force'], 'unknown option --force'],
  ['the gate with a version', ['minor', '--gate'], 'other arguments with --gate'],
])('refuses to start %s', async (_, args, reason) => {
  const ended = await release(...args);
  expect(ended).toMatchObject({ code: 2, stdout: '' });
  expect(ended.stderr).toContain(`weir: ${reason}`);
  expect(ended.stderr).toContain('Usage: npm run release -- <major|minor|patch|x.y.z|x.y.z-rc.n>');
});

test('refuses another branch, a changed tree and an existing tag in one message, and changes nothing', async () => {
  await git('switch', '--quiet', '--create', 'other');
  await git('tag', `v${next}`);
  folder.write('docs/note.md', 'not committed\n');
  try {
    const before = await state();
    const ended = await release('minor');
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(
      `the current branch is other, but ${next} is released from main or release-${next.slice(0, -2)}; ` +
        'run `git switch main`',
    );
    expect(ended.stderr).toContain('the working tree has changes; commit or stash them');
    expect(ended.stderr).toContain('?? docs/note.md');
    expect(ended.stderr).toContain(`the tag v${next} already exists; choose a later version`);
    expect(await state()).toBe(before);
  } finally {
    await git('clean', '--quiet', '--force', 'docs');
    await git('tag', '--delete', `v${next}`);
  }
});

test('refuses to leave the chart out, unless asked, if Helm is not installed', async () => {
  await git('switch', '--quiet', '--create', 'chart');
  folder.write(CHART, 'name: weir\n');
  const PATH = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((path) => !existsSync(join(path, 'helm')))
    .join(delimiter);
  const env = { ...process.env, PATH, WEIR_TEST_HELM: '' };
  const script = ['.ci/release.mjs', 'minor'];
  const ended = await runToEnd(process.execPath, script, { cwd: folder.path, env });
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain(
    'Helm is not installed; run `node .ci/tools.mjs helm`, or add --without-chart',
  );
  await git('checkout', '--quiet', '--', '.');
  await git('clean', '--quiet', '--force', '-d', 'deploy');
});

test('refuses a changelog without new entries', async () => {
  await git('switch', '--quiet', '--create', 'nothing-new');
  folder.write('CHANGELOG.md', read('CHANGELOG.md').replace(ENTRIES, '### Added\n'));
  const ended = await release('minor');
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain('CHANGELOG.md has no entries under "## [Unreleased]"');
  await git('checkout', '--quiet', '--', 'CHANGELOG.md');
});

test('the version in package.json can be released, if it has no tag', async () => {
  const ended = await release(current, '--dry-run');
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(ended.stdout).toContain(`git push origin main v${current}`);
  // Nobody gets a candidate without asking for it.
  expect(ended.stdout.includes(' --tag next')).toBe(current.includes('-'));
  expect(ended.stdout.includes('--tag "$IMAGE:latest"')).toBe(!current.includes('-'));
});

test('--dry-run prints the steps and changes nothing', async () => {
  const before = await state();
  const ended = await release('minor', '--dry-run');
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(ended.stdout).toContain(`# would commit "Release ${next}", tag v${next} and write files to dist/`);
  expect(ended.stdout).toMatch(/^# would change .*CHANGELOG\.md.*package-lock\.json.*package\.json$/m);
  expect(ended.stdout).toContain('- Something that was\n  wrong.');
  expect(ended.stdout).toContain(`git push origin main v${next}`);
  expect(await state()).toBe(before);
});

test('a fix of an older version is released from its own branch, and is not the latest', async () => {
  const fix = `${next.slice(0, -2)}.1`;
  await git('switch', '--quiet', '--create', `release-${next.slice(0, -2)}`);
  const { stdout } = await release(fix, '--dry-run');
  expect(stdout).toContain(`git push origin release-${next.slice(0, -2)} v${fix}`);
  expect(stdout).toContain(' --tag older');
  expect(stdout).not.toContain('--tag "$IMAGE:latest"');
});

test('leaves no release behind if the build fails', async () => {
  await git('switch', '--quiet', '--create', 'main-that-fails');
  await git('branch', '--move', 'main', 'kept');
  await git('branch', '--move', 'main');
  folder.write('src/bad.ts', 'export const BAD: number = "text";\n');
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'Break the build');
  try {
    const before = await state();
    const ended = await release('minor');
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('the build failed');
    expect(await state()).toBe(before);
  } finally {
    await git('branch', '--move', 'failed');
    await git('switch', '--quiet', 'kept');
    await git('branch', '--move', 'main');
  }
});

test('leaves no release behind if the tag cannot be signed', async () => {
  await git('config', 'tag.gpgSign', 'true');
  await git('config', 'gpg.program', 'false');
  try {
    const before = await state();
    expect(await release('minor', '--without-chart')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('git tag failed'),
    });
    expect(await state()).toBe(before);
  } finally {
    await git('config', '--unset', 'tag.gpgSign');
  }
});

test('commits, tags, fills dist/ and prints what would be pushed', async () => {
  const before = await git('rev-parse', 'HEAD');
  const ended = await release('minor');
  expect(ended).toMatchObject({ code: 0 });

  // There is one commit with a tag, and no other change.
  expect(await git('log', '-1', '--format=%s %P')).toBe(`Release ${next} ${before}`);
  expect(await git('status', '--porcelain')).toBe('');
  expect(await git('rev-parse', `v${next}^{commit}`)).toBe(await git('rev-parse', 'HEAD'));
  expect(await git('cat-file', '-t', `v${next}`)).toBe('tag');

  // The version is updated in every place.
  expect(JSON.parse(read('package.json'))).toMatchObject({ version: next });
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({
    version: next,
    packages: { '': { version: next } },
  });
  expect(read('deploy/Dockerfile')).toContain(`org.opencontainers.image.version="${next}"`);
  expect(read('docs/install.md')).toBe(
    `docker run weir:${next} and weir-${next}.tgz, not other:${current}\n`,
  );
  expect(read('deploy/kubernetes/weir.yaml')).toContain(`image: weir:${next}`);
  if (existsSync(folder.join(CHART))) {
    expect(read(CHART)).toContain(`version: ${next}\n`);
    expect(read(CHART)).toContain(`appVersion: "${next}"\n`);
  }

  // The changelog has a new section with its date, without empty subsections.
  const [head = ''] = read('CHANGELOG.md').split(`## [${released}]`);
  const [, unreleased, date, notes] =
    /## \[Unreleased\]\n([\s\S]*)## \[[-\w.]+\] - (\d{4}-\d\d-\d\d)\n([\s\S]*)$/.exec(head) ?? [];
  expect(unreleased).toBe('\n### Added\n\n### Changed\n\n### Fixed\n\n');
  expect(Math.abs(Date.parse(date ?? '') - Date.now())).toBeLessThan(2 * 86_400_000);
  expect(notes).toBe(`\n${ENTRIES.replace('### Changed\n\n', '')}\n`);
  const links = [
    `[Unreleased]: https://example.com/weir/compare/v${next}...HEAD`,
    `[${next}]: https://example.com/weir/compare/v${released}...v${next}`,
  ];
  expect(read('CHANGELOG.md')).toContain(`\n\n${links.join('\n')}\n`);

  // The published files have correct checksums.
  const chart = hasChart ? [`weir-chart-${next}.tgz`] : [];
  const made = ['policy.schema.json', 'sbom.cdx.json', `weir-${next}.tgz`, ...chart];
  const sums = made.map(
    (path) =>
      `${createHash('sha256')
        .update(readFileSync(folder.join('dist', path)))
        .digest('hex')}  ${path}\n`,
  );
  expect(read('dist/SHA256SUMS')).toBe(sums.join(''));
  expect(JSON.parse(read('dist/sbom.cdx.json'))).toMatchObject({
    bomFormat: 'CycloneDX',
    metadata: { component: { name: 'weir', version: next } },
  });
  const unpacked = folder.join('build/unpacked');
  await runToEnd('mkdir', ['-p', unpacked]);
  await runToEnd('tar', ['-xzf', folder.join(`dist/weir-${next}.tgz`), '-C', unpacked]);
  expect(JSON.parse(read('build/unpacked/package/build/package.json'))).toMatchObject({ version: next });

  // The commands cover every distribution channel, and both architectures.
  for (const command of [
    `git push origin main v${next}`,
    '--platform linux/amd64,linux/arm64',
    '--label org.opencontainers.image.source=https://example.com/weir',
    `--tag "$IMAGE:${next}"`,
    `npm publish ./dist/weir-${next}.tgz`,
    ...(hasChart ? [`helm push dist/weir-chart-${next}.tgz "$CHARTS"`] : []),
  ])
    expect(ended.stdout).toContain(command);
});
