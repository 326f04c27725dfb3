// The texts that a release changes: the next version, and all texts that contain the previous version.

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-rc\.([1-9]\d*))?$/;
const PARTS = ['major', 'minor', 'patch'];
const UNRELEASED = '## [Unreleased]\n';
const EMPTY_UNRELEASED = `${UNRELEASED}\n### Added\n\n### Changed\n\n### Fixed\n`;
const BREAKING = '- **Breaking:** ';

/** Returns the numbers of a version. A candidate (`1.0.0-rc.1`) comes before its release. */
function numbersOf(version) {
  const found = VERSION.exec(version);
  return found?.slice(1).map((part) => (part === undefined ? Number.POSITIVE_INFINITY : Number(part)));
}

/** Returns the next version of a part. A candidate is the next one itself, if it differs from the last in this part. */
function following(current, part) {
  const [major, minor, patch, candidate] = numbersOf(current);
  const numbers = [major, minor, patch];
  const isNext = candidate !== Number.POSITIVE_INFINITY && numbers.slice(part + 1).every((one) => one === 0);
  return numbers.map((one, at) => (at < part || isNext ? one : at === part ? one + 1 : 0)).join('.');
}

/**
 * Returns the version that `wanted` (major, minor, patch, x.y.z or x.y.z-rc.n) selects after `current`. Returns
 * undefined if `wanted` is invalid, or earlier than `current`. The current version itself may not be released yet.
 */
export function nextVersion(current, wanted) {
  const part = PARTS.indexOf(wanted);
  if (part !== -1) return following(current, part);
  const target = numbersOf(wanted);
  if (target === undefined) return undefined;
  const numbers = numbersOf(current);
  const differs = target.findIndex((one, at) => one !== numbers[at]);
  return differs === -1 || target[differs] > numbers[differs] ? wanted : undefined;
}

/** Returns whether a version is a candidate, which nobody gets without asking for it. */
export const isCandidate = (version) => version.includes('-');

/**
 * Returns the start and end of the Unreleased part of a changelog, without its heading, or undefined if the part is
 * missing.
 */
function unreleasedIn(changelog) {
  const heading = changelog.indexOf(UNRELEASED);
  if (heading === -1) return undefined;
  const start = heading + UNRELEASED.length;
  const next = /^(?:## |\[[^\]]+\]: )/m.exec(changelog.slice(start));
  return { heading, start, end: next === null ? changelog.length : start + next.index };
}

/** Returns sections of a changelog with all breaking changes in a section of their own, which comes first. */
function breakingFirst(sections) {
  const breaking = [];
  const rest = sections.map((section) => {
    const title = /^### (.*)/.exec(section)?.[1];
    return section
      .split(/^(?=- )/m)
      .filter((entry) => {
        if (!entry.startsWith(BREAKING)) return true;
        breaking.push(`- **${title}:** ${entry.slice(BREAKING.length)}`);
        return false;
      })
      .join('');
  });
  if (breaking.length === 0) return rest;
  const at = rest.findIndex((section) => section.startsWith('### '));
  const entries = breaking.map((entry) => `${entry.trimEnd()}\n`).join('');
  return rest.toSpliced(at, 0, `### Breaking\n\n${entries}`);
}

/**
 * Returns the entries under Unreleased, without empty sections, or '' if the part is empty. Entries that begin with
 * `**Breaking:**` move to the section Breaking, with the name of their section.
 */
export function unreleasedNotes(changelog) {
  const found = unreleasedIn(changelog);
  if (found === undefined) return '';
  const text = changelog.slice(found.start, found.end);
  if (!/^- /m.test(text)) return '';
  return breakingFirst(text.split(/^(?=### )/m))
    .map((section) => section.trim())
    .filter((section) => section !== '' && (!section.startsWith('### ') || /^- /m.test(section)))
    .join('\n\n');
}

/** Returns the entries of a released version, without its heading, or undefined if the changelog does not have it. */
export function notesOf(changelog, version) {
  const start = changelog.indexOf(`## [${version}] - `);
  if (start === -1) return undefined;
  const text = changelog.slice(changelog.indexOf('\n', start) + 1);
  const next = /^(?:## |\[[^\]]+\]: )/m.exec(text);
  return text.slice(0, next?.index).trim();
}

/** Returns links from each version in a changelog to its changes, with the paths of GitHub, Gitea and Forgejo. */
function links(changelog, repository) {
  const versions = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+[-\w.]*)\]/gm)].map(([, version]) => version);
  const lines = [`[Unreleased]: ${repository}/compare/v${versions[0]}...HEAD`];
  for (const [at, version] of versions.entries()) {
    const before = versions[at + 1];
    const path = before === undefined ? `releases/tag/v${version}` : `compare/v${before}...v${version}`;
    lines.push(`[${version}]: ${repository}/${path}`);
  }
  return lines.join('\n');
}

/**
 * Returns the changelog after a release: the entries under Unreleased move below a heading with the version and its
 * date (YYYY-MM-DD), and Unreleased becomes empty. `repository` (https://…, or undefined) adds a link for each version.
 */
export function releasedChangelog(changelog, version, date, repository) {
  const { heading, end } = unreleasedIn(changelog);
  const notes = unreleasedNotes(changelog);
  const rest = changelog.slice(end).replaceAll(/^\[(Unreleased|\d+\.\d+\.\d+[-\w.]*)\]: .*\n/gm, '');
  const parts = [
    changelog.slice(0, heading) + EMPTY_UNRELEASED,
    `## [${version}] - ${date}`,
    notes,
    rest.trim(),
  ];
  const text = parts.map((part) => part.trimEnd()).join('\n\n');
  return `${text}\n${repository === undefined ? '' : `\n${links(text, repository)}\n`}`;
}

/** Returns the https address of the `repository` in a package.json (a text or {url}), or undefined. */
export function repositoryOf({ repository }) {
  const url = typeof repository === 'string' ? repository : repository?.url;
  return url === undefined ? undefined : url.replace(/^git\+/, '').replace(/\.git$/, '');
}

const escaped = (version) => version.replaceAll('.', '\\.');

/** Returns a text in which each tag, file name or label with weir's version `from` has the version `to`. */
export function namingVersion(text, from, to) {
  const before = String.raw`(?<=\bweir(?:-chart)?[:-]|\bversion(?:=|":)"|\bVERSION=)`;
  const label = String.raw`(?<=app\.kubernetes\.io/version: "?)`;
  return text.replaceAll(new RegExp(`(?:${before}|${label})${escaped(from)}(?![-\\w.]*\\d)`, 'g'), to);
}

/**
 * Returns a package.json or package-lock.json with another version of weir. The versions of other packages stay the
 * same, even if they are equal.
 */
export function manifestWithVersion(text, version) {
  const manifest = JSON.parse(text);
  manifest.version = version;
  if (manifest.packages?.[''] !== undefined) manifest.packages[''].version = version;
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

/** Returns a Chart.yaml with this version of the chart and the application. */
export function chartWithVersion(text, version) {
  return text.replaceAll(/^(version|appVersion):.*$/gm, (_, key) =>
    key === 'version' ? `version: ${version}` : `appVersion: "${version}"`,
  );
}

/** Returns the values.yaml of the chart with this image ({repository, digest}) as the default. */
export function imageInValues(text, { repository, digest }) {
  const section = /^image:\n(?: .*\n)+/m.exec(text)?.[0];
  const changed = section
    ?.replace(/^ {2}repository: .*$/m, `  repository: ${repository}`)
    .replace(/^ {2}digest: .*$/m, `  digest: ${digest}`);
  if (!changed?.includes(repository) || !changed.includes(digest))
    throw new Error('values.yaml has no image.repository and image.digest');
  return text.replace(section, changed);
}

const SECTIONS = ['Breaking', 'Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];

/**
 * Returns why notes cannot be those of `version`, or undefined. A patch contains only fixes, only a major version (or
 * 0.x) breaks something, and each release tells what is new or fixed.
 */
export function notesProblem(notes, version) {
  const titles = [...notes.matchAll(/^### (.*)$/gm)].map(([, title]) => title);
  const unknown = titles.find((title) => !SECTIONS.includes(title));
  if (unknown !== undefined) return `the section ${unknown} is not one of ${SECTIONS.join(', ')}`;
  const [major, minor, patch] = numbersOf(version);
  const has = (title) => titles.includes(title);
  if (patch > 0) {
    const other = titles.find((title) => !['Fixed', 'Security'].includes(title));
    if (other !== undefined) return `${version} is a patch, but its notes have the section ${other}`;
    return titles.length === 0 ? `${version} has no notes` : undefined;
  }
  if (has('Breaking') && minor > 0 && major > 0)
    return `${version} is a minor version, but its notes have breaking changes`;
  for (const title of ['Added', 'Fixed', ...(minor === 0 && major > 1 ? ['Breaking'] : [])])
    if (!has(title)) return `the notes of ${version} have no section ${title}`;
  return undefined;
}
