// The environment of all tests, however jest was started: removes variables of the user's terminal, locale and shell,
// for tests and their child processes. jest.config.mjs loads this file in jest itself, so that workers inherit the
// environment. jest also loads the file in each worker, because it passes variables such as FORCE_COLOR to workers on a
// colour terminal.
const { homedir } = require('node:os');
const { TestEnvironment } = require('jest-environment-node');

/** Variables that tests need: programs, folders, package registries, and variables for tests. */
const KEPT = [
  /^(PATH|TMPDIR|LD_LIBRARY_PATH)$/,
  /^(HTTPS?_PROXY|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|npm_config_.*)$/i,
  /^(JEST_WORKER_ID|NODE_COMPILE_CACHE|WEIR_TEST_.*)$/,
];
/** Names the file that a jest run counts in. A jest run that a test starts must not write this file. */
const COUNTS = 'WEIR_TEST_COUNTS';
const NO_PROXY = ['127.0.0.1', 'localhost', '::1', process.env.no_proxy ?? process.env.NO_PROXY ?? ''];
const FIXED = {
  HOME: homedir(), // which is known where HOME is unset, too
  LANG: 'C.UTF-8',
  NODE_ENV: 'test',
  NO_PROXY: NO_PROXY.join(','),
  no_proxy: NO_PROXY.join(','),
  TZ: 'UTC',
};

for (const name of Object.keys(process.env)) {
  if (name === COUNTS || !KEPT.some((kept) => kept.test(name))) delete process.env[name];
}
Object.assign(process.env, FIXED);
process.umask(0o022);

module.exports = TestEnvironment;
