// `npm run release -- <major|minor|patch|x.y.z>`: makes a release from a clean branch, and pushes nothing. See
// docs/internals/releasing.md.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHART, chartFile, hasChart, makeDist } from './dist.mjs';
import { gate } from './gate.mjs';
import { rehearse } from './rehearse.mjs';
import {
  chartWithVersion,
  isCandidate,
  manifestWithVersion,
  namingVersion,
  nextVersion,
  releasedChangelog,
  repositoryOf,
  unreleasedNotes,
} from './release-texts.mjs';
import { Impossible, main, must, root, run, say } from './shell.mjs';
import { presentTool } from './tools.mjs';

const MAIN = 'main';
/** The branch with fixes of an older minor version. */
const branchOf = (version) => `release-${/^\d+\.\d+/.exec(version)[0]}`;
const DIST = 'dist';
const PLATFORMS = 'linux/amd64,linux/arm64';
/** Files that contain the version in commands that users type. */
const NAMING = ['README.md', 'docs', 'deploy', 'test'];
const USAGE = `Usage: npm run release -- <major|minor|patch|x.y.z|x.y.z-rc.n> [--dry-run] [--without-chart]
       npm run release -- --gate | --rehearse [--keep]

Sets the version, dates the changelog, builds the files to publish in dist/, commits and tags. Prints the commands that
publish the release, and pushes nothing.

  --dry-run        check whether the release is possible, and show the changes without making them
  --without-chart  omit the Helm chart from dist/; use this option if Helm is not installed
  --gate           run the tests and benchmarks that the version in package.json must pass before its release
  --rehearse       publish to a registry on this machine, sign with a key made for this run, and verify
  --keep           keep that registry and the files until Ctrl-C, to follow docs/operate/verify.md by hand
`;

const read = (path) => readFileSync(join(root, path), 'utf8');
const git = (...args) => must(`git ${args[0]}`, 'git', args);

/** Returns the reasons why `version` cannot be released now. The list is empty if it can. */
async function obstacles(version, branch, helm, withoutChart) {
  const found = [];
  if (branch !== MAIN && branch !== branchOf(version))
    found.push(
      `the current branch is ${branch}, but ${version} is released from ${MAIN} or ${branchOf(version)}; run ` +
        `\`git switch ${MAIN}\``,
    );
  const changes = (await git('status', '--porcelain')).trimEnd();
  if (changes !== '')
    found.push(`the working tree has changes; commit or stash them\n${changes.replaceAll(/^/gm, '    ')}`);
  if ((await git('tag', '--list', `v${version}`)).trim() !== '')
    found.push(`the tag v${version} already exists; choose a later version`);
  const changelog = read('CHANGELOG.md');
  if (changelog.includes(`## [${version}]`))
    found.push(`CHANGELOG.md already has a section for ${version}; choose a later version`);
  if (unreleasedNotes(changelog) === '')
    found.push('CHANGELOG.md has no entries under "## [Unreleased]"; add entries that describe the changes');
  if (hasChart() && helm === undefined && !withoutChart)
    found.push('Helm is not installed; run `node .ci/tools.mjs helm`, or add --without-chart');
  return found;
}

/** Returns path → new text for each file that the release changes. */
async function changedTexts(version) {
  const manifest = JSON.parse(read('package.json'));
  const date = new Date().toISOString().slice(0, 10);
  const texts = new Map([
    ['package.json', manifestWithVersion(read('package.json'), version)],
    ['package-lock.json', manifestWithVersion(read('package-lock.json'), version)],
    ['CHANGELOG.md', releasedChangelog(read('CHANGELOG.md'), version, date, repositoryOf(manifest))],
  ]);
  if (hasChart()) {
    const path = `${CHART}/Chart.yaml`;
    texts.set(path, chartWithVersion(read(path), version));
  }
  const { output } = await run('git', ['grep', '-lIF', manifest.version, '--', ...NAMING]);
  for (const path of output.split('\n').filter((one) => one !== '')) {
    const text = texts.get(path) ?? read(path);
    const changed = namingVersion(text, manifest.version, version);
    if (changed !== text) texts.set(path, changed);
  }
  return texts;
}

/**
 * Returns the commands that publish a release, for a person to review and run. The tag starts the workflow, which
 * signs.
 */
function publishing(version, branch, withChart) {
  const { name, private: isPrivate } = JSON.parse(read('package.json'));
  const repository = repositoryOf(JSON.parse(read('package.json')));
  const labels = [
    'org.opencontainers.image.revision="$(git rev-parse HEAD)"',
    'org.opencontainers.image.created="$(git log -1 --format=%cI)"',
    ...(repository === undefined ? [] : [`org.opencontainers.image.source=${repository}`]),
  ];
  const channel = isCandidate(version) ? 'next' : branch === MAIN ? 'latest' : 'older';
  const image = [
    `docker buildx build -f deploy/Dockerfile --platform ${PLATFORMS}`,
    '--provenance=mode=max --sbom=true',
    ...labels.map((label) => `--label ${label}`),
    `--tag "$IMAGE:${version}"${channel === 'latest' ? ' --tag "$IMAGE:latest"' : ''} --push .`,
  ];
  return [
    '# nothing has been pushed; this command publishes the release, because .github/workflows/release.yml builds and',
    '# signs everything for a new tag',
    `git push origin ${branch} v${version}`,
    '',
    '# without the workflow: the same files without signatures',
    'IMAGE=registry.example.com/weir          # yours',
    ...(withChart ? ['CHARTS=oci://registry.example.com/charts # yours'] : []),
    image.join(' \\\n  '),
    ...(isPrivate === true
      ? [`# npm rejects the next command while package.json contains "private": true`]
      : []),
    `npm publish ./${DIST}/${name}-${version}.tgz${channel === 'latest' ? '' : ` --tag ${channel}`}`,
    ...(withChart ? [`helm push ${DIST}/${chartFile(version)} "$CHARTS"`] : []),
  ].join('\n');
}

async function release(version, helm) {
  const texts = await changedTexts(version);
  const paths = [...texts.keys()];
  const before = (await git('rev-parse', 'HEAD')).trim();
  let made;
  try {
    for (const [path, text] of texts) writeFileSync(join(root, path), text);
    made = await makeDist(join(root, DIST), helm);
    await git('add', '--', ...paths);
    // A hook, or a missing signing key, may reject either command.
    await git('commit', '--quiet', '--message', `Release ${version}`);
    await git('tag', '--annotate', `v${version}`, '--message', `weir ${version}`);
  } catch (error) {
    // The tree was clean, so no changes are lost.
    await git('reset', '--quiet', '--soft', before);
    await git('reset', '--quiet', '--', ...paths);
    await git('checkout', '--quiet', '--', ...paths);
    rmSync(join(root, DIST), { recursive: true, force: true });
    throw error;
  }
  say(`${version} is committed and tagged as v${version}`);
  for (const name of made) say(`created ${DIST}/${name}`);
}

async function showPlan(version) {
  const texts = await changedTexts(version);
  process.stdout.write(`# would change ${[...texts.keys()].sort().join(', ')}\n`);
  process.stdout.write(`# would commit "Release ${version}", tag v${version} and write files to ${DIST}/\n`);
  process.stdout.write(`# release notes for ${version}:\n${unreleasedNotes(read('CHANGELOG.md'))}\n\n`);
}

await main(async () => {
  const args = process.argv.slice(2);
  const [wanted, ...more] = args.filter((arg) => !arg.startsWith('--'));
  const flags = args.filter((arg) => arg.startsWith('--'));
  if (flags.includes('--help')) {
    process.stdout.write(USAGE);
    return;
  }
  const alone = {
    '--gate': () => gate(),
    '--rehearse': () => rehearse(),
    '--rehearse --keep': () => rehearse(true),
  }[args.join(' ')];
  if (alone !== undefined) {
    await alone();
    return;
  }
  const current = JSON.parse(read('package.json')).version;
  const unknown = flags.find((flag) => !['--dry-run', '--without-chart'].includes(flag));
  const version = wanted === undefined ? undefined : nextVersion(current, wanted);
  if (version === undefined || more.length > 0 || unknown !== undefined) {
    const reason =
      unknown !== undefined
        ? `${/^--(gate|rehearse|keep)$/.test(unknown) ? 'other arguments with' : 'unknown option'} ${unknown}`
        : wanted === undefined || more.length > 0
          ? 'specify one version'
          : `${wanted} is not a valid version; use major, minor, patch or a version from ${current} on`;
    process.stderr.write(`weir: ${reason}\n\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  const withoutChart = flags.includes('--without-chart');
  const helm = withoutChart ? undefined : presentTool('helm');
  const branch = (await git('rev-parse', '--abbrev-ref', 'HEAD')).trim();
  const found = await obstacles(version, branch, helm, withoutChart);
  if (found.length > 0)
    throw new Impossible(`${version} cannot be released:\n${found.map((one) => `  - ${one}`).join('\n')}`);
  if (flags.includes('--dry-run')) await showPlan(version);
  else await release(version, helm);
  process.stdout.write(`${publishing(version, branch, helm !== undefined && hasChart())}\n`);
});
