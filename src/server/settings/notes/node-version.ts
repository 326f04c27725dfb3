/** The oldest Node.js that weir supports, as `engines` in package.json says. */
const OLDEST = { major: 22, minor: 15 };

/** Whether a version of Node.js, by default that of this process, is older than `major.minor`. */
export function isNodeOlderThan(major: number, minor: number, version = process.versions.node): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** Warns of a Node.js that is older than weir supports: weir runs on it, untested. */
export function nodeVersionNotes(version = process.versions.node): string[] {
  const { major, minor } = OLDEST;
  if (!isNodeOlderThan(major, minor, version)) return [];
  return [
    `Node.js ${version} is older than ${major}.${minor}, the oldest version that weir supports; install Node.js 24`,
  ];
}
