// The environment that every test runs in, however jest was started: what the terminal, the locale and the shell of
// whoever runs the tests have set is gone, for the tests and for each process that they start. jest.config.mjs loads
// this file in jest itself, so that its workers begin with that environment, and jest loads it in each worker, since
// it hands its workers variables such as FORCE_COLOR on a colour terminal.
const { homedir } = require('node:os');
const { TestEnvironment } = require('jest-environment-node');

/** What tests need of the machine: programs, folders, ways to package registries, and what is said to tests alone. */
const KEPT = [
  /^(PATH|TMPDIR|LD_LIBRARY_PATH)$/,
  /^(HTTPS?_PROXY|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|npm_config_.*)$/i,
  /^(JEST_WORKER_ID|WEIR_TEST_.*)$/,
];
/** Names the file that one run of jest counts into, and that no jest which a test starts may write. */
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
