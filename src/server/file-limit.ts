import { readRegularFile } from '../runtime/regular-file.js';

/** Files other than connections: listeners, Redis, logs, policy files. */
const OTHER_FILES = 100;
/** Maximum number of bytes that are read; the file of Linux is far smaller. */
const MAX_LIMITS_BYTES = 64 * 1024;

/**
 * Returns a warning if the limit of open files is below `maxConnections`, because the system would then refuse
 * connections before weir does. Returns undefined if the limit is high enough, or unknown (only Linux has `/proc`).
 */
export function fileLimitWarning(maxConnections: number): string | undefined {
  let limits: string;
  try {
    limits = readRegularFile('/proc/self/limits', MAX_LIMITS_BYTES).toString();
  } catch {
    return undefined;
  }
  return checkFileLimit(limits, maxConnections);
}

/** Checks the text of `/proc/self/limits`; see {@link fileLimitWarning}. */
export function checkFileLimit(limits: string, maxConnections: number): string | undefined {
  const files = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  if (files >= maxConnections) return undefined;
  return (
    `this process can open only ${files} files, too few for GRPC_MAX_CONNECTIONS=${maxConnections}; raise ` +
    `the limit (ulimit -n) to ${maxConnections + OTHER_FILES}, or lower the setting`
  );
}
