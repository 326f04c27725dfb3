/*
 * `npm run demo`: the example of the bundled policy. Starts weir, a real Envoy and an upstream on loopback, sends
 * requests, prints the responses, and stops everything. With --watch, it runs until Ctrl-C (watch.ts).
 */
import { type Burst, fireBurst } from '../../test/support/envoy/burst.js';
import { type Stack, startStack } from '../../test/support/envoy/stack.js';
import { closeAll } from '../../test/support/process/close-later.js';
import { type HttpAnswer, headersLike } from '../../test/support/process/http-client.js';
import { watch } from './watch.js';

const HELP = `Usage: npm run demo [-- --watch]

Starts weir with its bundled policy, Envoy with deploy/envoy/envoy.yaml, and an upstream that echoes requests, on free ports of
127.0.0.1. Envoy's timeout for decisions is 10 s here, so that a busy machine does not change the counts. The demo
then sends

  1. 200 concurrent GET requests for /open/v5/user-chats; the bucket holds 100 tokens
  2. another 100 requests a second after the last response; the bucket has gained 10 tokens
  3. one GET request for another resource, which has a separate bucket

Prints the number of responses with status 200 and 429, and their headers. Stops everything that it started.

  --watch   Instead of these requests, sends a steady load that exceeds a limit, and also starts Prometheus with
            deploy/prometheus/rules.yaml. Prints the addresses to open, and runs until Ctrl-C. Downloads
            Prometheus the first time.
`;

const CHATS = '/open/v5/user-chats';
const OTHER = '/open/v5/groups';
const TENANT = { 'x-tenant': 'acme' };
const HEADERS = ['limit', 'remaining', 'reset', 'will-be-throttled'];

function headerCells(answer: HttpAnswer | undefined): string[] {
  if (answer === undefined) return HEADERS.map(() => '');
  const found = new Map(headersLike(answer, 'x-ratelimit-'));
  return HEADERS.map((name) => found.get(`x-ratelimit-${name}`) ?? '-');
}

const remainingOf = (answer: HttpAnswer) =>
  Number(new Map(headersLike(answer, 'x-ratelimit-')).get('x-ratelimit-remaining'));

/** Returns a row for each status, with the headers of the response with the fewest remaining tokens. */
function rowsOf(what: string, burst: Burst): string[][] {
  const statuses = [...new Set(burst.answers.map(({ status }) => status))].sort();
  return statuses.map((status, index) => {
    const answers = burst.answers
      .filter((answer) => answer.status === status)
      .sort((one, other) => remainingOf(other) - remainingOf(one));
    return [index === 0 ? what : '', String(status), String(answers.length), ...headerCells(answers.at(-1))];
  });
}

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    console.log(`  ${cells.join('   ')}`.trimEnd());
  }
}

async function play({ envoy }: Stack): Promise<void> {
  const first = await fireBurst(envoy.port, CHATS, 200, TENANT);
  // All tokens of the first burst were taken before its last answer, so the bucket has gained at least 10 tokens.
  const delayMs = Math.max(0, first.lastAnsweredAt + 1000 - performance.now());
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  const second = await fireBurst(envoy.port, CHATS, 100, TENANT);
  const other = await fireBurst(envoy.port, OTHER, 1, TENANT);
  console.log(
    'Each row counts the responses with one status, and shows the headers of the response with the ' +
      'fewest remaining tokens:\n',
  );
  printTable([
    ['requests', 'status', 'count', ...HEADERS],
    ...rowsOf(`200 × GET ${CHATS}`, first),
    ...rowsOf(`100 × GET ${CHATS}, 1 s later`, second),
    ...rowsOf(`1 × GET ${OTHER}`, other),
  ]);
  const spread = (burst: Burst) => Math.round(burst.lastAnsweredAt - burst.firstSentAt);
  console.log(
    `\nThe bursts took ${spread(first)} ms and ${spread(second)} ms, from the first request to the last ` +
      'response. The bucket gains 10 tokens a second.',
  );
}

const stopping = new AbortController();

async function main(): Promise<void> {
  const given = process.argv.slice(2);
  if (given.length === 1 && given[0] === '--watch') {
    // The second Ctrl-C exits at once.
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      process.on(signal, () => (stopping.signal.aborted ? process.exit(code) : stopping.abort()));
    }
    console.log('Starting weir, Envoy, an upstream and Prometheus …');
    await watch(stopping.signal);
    console.log('Stopped.');
    return;
  }
  if (given.length > 0) {
    const asked = given.every((argument) => argument === '--help' || argument === '-h');
    (asked ? process.stdout : process.stderr).write(HELP);
    process.exitCode = asked ? 0 : 2;
    return;
  }
  // process.exit stops all started processes (test/support/process/processes.ts).
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  console.log('Starting weir, Envoy and an upstream …');
  const stack = await startStack();
  try {
    console.log(
      `Envoy 127.0.0.1:${stack.envoy.port} -> weir 127.0.0.1:${stack.weir.grpcPort}, upstream ` +
        `127.0.0.1:${stack.upstreamPort}\n`,
    );
    await play(stack);
  } finally {
    await closeAll();
  }
  console.log('Stopped.');
}

main().catch((error: Error) => {
  console.error(`demo: ${error.message}`);
  process.exit(1);
});
