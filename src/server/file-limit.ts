import { readRegularFile } from '../regular-file.js';

/** Files beside connections: listeners, Redis, logs, policy files. */
const OTHER_FILES = 100;
/** More than the system has ever written. */
const MAX_LIMITS_BYTES = 64 * 1024;

/**
 * A sentence for the log where the process may not open as many files as `maxConnections` connections take: the system
 * would refuse some of them long before. Undefined where it may, or where the system does not tell (`/proc` is
 * Linux's).
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

/** {@link fileLimitWarning} for the text of `/proc/self/limits`. */
export function checkFileLimit(limits: string, maxConnections: number): string | undefined {
  const files = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  if (files >= maxConnections) return undefined;
  return (
    `this process may open ${files} files, too few for GRPC_MAX_CONNECTIONS=${maxConnections}: raise the ` +
    `limit (ulimit -n) to ${maxConnections + OTHER_FILES}, or lower the setting`
  );
}
