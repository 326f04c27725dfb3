// The environment of all tests, however jest was started: removes variables of the user's terminal, locale and shell,
// for tests and their child processes. jest.config.mjs loads this file in jest itself, so that workers inherit the
// environment. jest also loads the file in each worker, because it passes variables such as FORCE_COLOR to workers on a
// colour terminal.
const { createServer } = require('node:net');
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

/** Number of lanes of ports; also in test/support/process/free-port.ts. Lane 0 is for programs outside of jest. */
const LANES = 50;

/** Listens on an abstract socket, which the system removes with the process. Resolves with an error code, or ''. */
const listen = (name) =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code }) => resolve(code));
    server.listen(`\0${name}`, () => {
      server.unref();
      resolve('');
    });
  });

/** Reserves a lane of ports for this process, among all test processes of the machine, also those of other runs. */
async function reserveLane() {
  const first = Number(process.env.JEST_WORKER_ID ?? 1);
  for (let i = 0; i < LANES - 1; i++) {
    const lane = 1 + ((first - 1 + i) % (LANES - 1));
    const code = await listen(`weir-test-ports-${lane}`);
    // A system without abstract sockets reserves nothing.
    if (code !== 'EADDRINUSE') return lane;
  }
  throw new Error(`${LANES - 1} test processes already use the ports for tests; wait until some of them end`);
}

let reserved;

/** Time for sockets, processes and timers of a test file to end after its tests. */
const END_MS = 10_000;
const POLL_MS = 20;

/** Waits until nothing keeps this process alive that did not before. Resolves with the names of what is left. */
async function leftOpen(before) {
  const end = performance.now() + END_MS;
  for (;;) {
    const left = process.getActiveResourcesInfo();
    for (const name of before) if (left.includes(name)) left.splice(left.indexOf(name), 1);
    if (left.length === 0 || performance.now() > end) return left;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

module.exports = class extends TestEnvironment {
  /** For the file, and each `describe` block and test that runs: the functions that close what it opened. */
  scopes = [[]];
  /** Errors of these functions after a `describe` block or the file. */
  errors = [];
  hasFailed = false;

  async setup() {
    await super.setup();
    reserved ??= reserveLane();
    this.global.weirTestLane = await reserved;
    // See test/support/process/close-later.ts.
    this.global.weirTestCloses = (close) => this.scopes.at(-1).push(close);
    this.before = process.getActiveResourcesInfo();
  }

  async handleTestEvent({ name, test }) {
    // Tests that run at the same time share the scope of their block.
    if (test?.concurrent) return;
    if (name === 'run_describe_start' || name === 'test_started') this.scopes.push([]);
    if (name === 'run_describe_finish' || name === 'test_done')
      await this.endScope(test?.errors ?? this.errors);
    if (test?.errors.length > 0) this.hasFailed = true;
  }

  /** Closes what the innermost scope opened, the latest first. */
  async endScope(errors) {
    for (const close of this.scopes.pop().reverse()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
  }

  async teardown() {
    await this.endScope(this.errors);
    // After the hooks of the file: a client whose server is gone would reconnect until it is closed.
    await this.global.weirTestEnd?.();
    await super.teardown();
    if (this.errors.length > 0) throw this.errors[0];
    // A test that failed may have left something open, and an error here would hide why it failed.
    if (this.hasFailed) return;
    const left = await leftOpen(this.before);
    if (left.length > 0)
      throw new Error(
        `the tests left open: ${left.join(', ')}; close each client, server and timer, for example with closeLater`,
      );
  }
};
