// The texts that a release changes: the next version, and all texts that contain the previous version.

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/;
const PARTS = ['major', 'minor', 'patch'];
const UNRELEASED = '## [Unreleased]\n';
const EMPTY_UNRELEASED = `${UNRELEASED}\n### Added\n\n### Changed\n\n### Fixed\n`;

const numbersOf = (version) => VERSION.exec(version)?.slice(1).map(Number);

/**
 * Returns the version that `wanted` (major, minor, patch or x.y.z) selects after `current` (x.y.z). Returns undefined
 * if `wanted` is invalid, or not later than `current`.
 */
export function nextVersion(current, wanted) {
  const numbers = numbersOf(current);
  const part = PARTS.indexOf(wanted);
  if (part !== -1) return numbers.map((one, at) => (at < part ? one : at === part ? one + 1 : 0)).join('.');
  const target = numbersOf(wanted);
  const differs = target?.findIndex((one, at) => one !== numbers[at]) ?? -1;
  return differs !== -1 && target[differs] > numbers[differs] ? wanted : undefined;
}

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

/** Returns the entries under Unreleased, without empty sections, or '' if the part is empty. */
export function unreleasedNotes(changelog) {
  const found = unreleasedIn(changelog);
  if (found === undefined) return '';
  return changelog
    .slice(found.start, found.end)
    .split(/^(?=### )/m)
    .map((section) => section.trim())
    .filter((section) => /^- /m.test(section))
    .join('\n\n');
}

/** Returns links from each version in a changelog to its changes, with the paths of GitHub, Gitea and Forgejo. */
function links(changelog, repository) {
  const versions = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm)].map(([, version]) => version);
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
  const rest = changelog.slice(end).replaceAll(/^\[(Unreleased|\d+\.\d+\.\d+)\]: .*\n/gm, '');
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
  const before = String.raw`(?<=\bweir[:-]|\bversion=")`;
  const label = String.raw`(?<=app\.kubernetes\.io/version: "?)`;
  return text.replaceAll(new RegExp(`(?:${before}|${label})${escaped(from)}(?![\\w.]*\\d)`, 'g'), to);
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
