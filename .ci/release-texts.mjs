// What a release writes: the next version, and the texts that name the old one.

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/;
const PARTS = ['major', 'minor', 'patch'];
const UNRELEASED = '## [Unreleased]\n';
const EMPTY_UNRELEASED = `${UNRELEASED}\n### Added\n\n### Changed\n\n### Fixed\n`;

const numbersOf = (version) => VERSION.exec(version)?.slice(1).map(Number);

/**
 * The version that `wanted` (major, minor, patch or x.y.z) makes of `current` (x.y.z); undefined if `wanted` is none of
 * these, or not later than `current`.
 */
export function nextVersion(current, wanted) {
  const numbers = numbersOf(current);
  const part = PARTS.indexOf(wanted);
  if (part !== -1) return numbers.map((one, at) => (at < part ? one : at === part ? one + 1 : 0)).join('.');
  const target = numbersOf(wanted);
  const differs = target?.findIndex((one, at) => one !== numbers[at]) ?? -1;
  return differs !== -1 && target[differs] > numbers[differs] ? wanted : undefined;
}

/** Where the Unreleased part of a changelog begins and ends, its heading left out; undefined if there is none. */
function unreleasedIn(changelog) {
  const heading = changelog.indexOf(UNRELEASED);
  if (heading === -1) return undefined;
  const start = heading + UNRELEASED.length;
  const next = /^(?:## |\[[^\]]+\]: )/m.exec(changelog.slice(start));
  return { heading, start, end: next === null ? changelog.length : start + next.index };
}

/** The entries under Unreleased, without sections that are empty; '' where there are none. */
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

/** Links of the versions in a changelog to what they changed, at the paths of GitHub, Gitea and Forgejo. */
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
 * The changelog after a release: what stood under Unreleased stands under the version and its date (YYYY-MM-DD), below
 * a new empty Unreleased. `repository` (https://…, or undefined while there is none) gives each version a link.
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

/** https address of the `repository` of a package.json (a text or {url}), or undefined. */
export function repositoryOf({ repository }) {
  const url = typeof repository === 'string' ? repository : repository?.url;
  return url === undefined ? undefined : url.replace(/^git\+/, '').replace(/\.git$/, '');
}

const escaped = (version) => version.replaceAll('.', '\\.');

/** A text with each place that names weir's version `from`, as a tag, a file name or a label, naming `to`. */
export function namingVersion(text, from, to) {
  const before = String.raw`(?<=\bweir[:-]|\bversion=")`;
  const label = String.raw`(?<=app\.kubernetes\.io/version: "?)`;
  return text.replaceAll(new RegExp(`(?:${before}|${label})${escaped(from)}(?![\\w.]*\\d)`, 'g'), to);
}

/** A package.json or package-lock.json with another version of weir itself; of other packages it may hold the same. */
export function manifestWithVersion(text, version) {
  const manifest = JSON.parse(text);
  manifest.version = version;
  if (manifest.packages?.[''] !== undefined) manifest.packages[''].version = version;
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

/** A Chart.yaml whose chart and application have this version. */
export function chartWithVersion(text, version) {
  return text.replaceAll(/^(version|appVersion):.*$/gm, (_, key) =>
    key === 'version' ? `version: ${version}` : `appVersion: "${version}"`,
  );
}
