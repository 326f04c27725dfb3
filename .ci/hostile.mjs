// Runs jest in an unusual environment that tests must not depend on; see HOSTILE.
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './shell.mjs';

/** Variables that terminals, shells, locales and deployments set, with conspicuous values. */
const HOSTILE = {
  ...{ FORCE_COLOR: '1', NO_COLOR: '1', COLUMNS: '20', LINES: '3', TERM: 'dumb' },
  ...{ LANG: 'de_DE.UTF-8', LC_ALL: 'de_DE.UTF-8', LANGUAGE: 'de', TZ: 'Pacific/Chatham', HOME: undefined },
  ...{ NODE_ENV: 'production', npm_lifecycle_event: 'start', GRPC_VERBOSITY: 'DEBUG', GRPC_TRACE: 'all' },
  ...{ http_proxy: 'http://127.0.0.1:1', https_proxy: 'http://127.0.0.1:1' },
  ...{ LOG_LEVEL: 'trace', LOG_FORMAT: 'odd', PORT: '1', GRPC_PORT: '1', DEBUG_PORT: '1', HOST: '192.0.2.1' },
  ...{ REDIS_URL: '127.0.0.1:1', REDIS_TYPE: 'cluster', REDIS_AUTH: 'odd', BACKEND_TYPE: 'memcache' },
  ...{ CONFIG_PATH: '/nowhere', RUNTIME_ROOT: '/nowhere', RUNTIME_SUBDIRECTORY: 'odd', WORKERS: '99' },
  ...{ USE_STATSD: 'true', STATSD_HOST: '127.0.0.1', STATSD_PORT: '1', SHADOW_MODE: 'true' },
};
/** Links in the copy of the checkout. All other needed files are copied. */
const LINKED = ['node_modules', '.tools'];
/** Names of files and folders that are not copied. Other runs write to the compile cache during the copy. */
const LEFT_OUT = ['.git', 'dist', 'coverage', 'compile-cache'];

const isCopied = (path) => !LEFT_OUT.includes(basename(path));

/**
 * Runs jest with `args` like jest.mjs, on a copy of the checkout in a folder whose name contains a space, with the
 * variables {@link HOSTILE} and a umask of 077.
 */
export async function jestAmongOddThings(node, args, env) {
  const folder = mkdtempSync(join(tmpdir(), 'we ir-'));
  const umask = process.umask(0o077);
  try {
    for (const name of readdirSync(root)) {
      if (LINKED.includes(name)) symlinkSync(join(root, name), join(folder, name));
      else cpSync(join(root, name), join(folder, name), { recursive: true, filter: isCopied });
    }
    const { jest } = await import(pathToFileURL(join(folder, '.ci/jest.mjs')));
    return await jest(node, args, { ...env, ...HOSTILE });
  } finally {
    process.umask(umask);
    rmSync(folder, { recursive: true, force: true });
  }
}
