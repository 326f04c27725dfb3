/** Minimum version of Node.js, equal to `engines` in package.json. */
const OLDEST = { major: 22, minor: 15 };

/** Returns whether a version of Node.js, by default that of this process, is older than `major.minor`. */
export function isNodeOlderThan(major: number, minor: number, version = process.versions.node): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** Returns a warning if Node.js is older than the supported versions. weir runs with it, but is not tested. */
export function nodeVersionNotes(version = process.versions.node): string[] {
  const { major, minor } = OLDEST;
  if (!isNodeOlderThan(major, minor, version)) return [];
  return [
    `Node.js ${version} is older than ${major}.${minor}, the oldest version that weir supports; install Node.js 24`,
  ];
}
