// Prints the table of docs/internals/features.md: the lines of each feature, and who asked for it. `npm run docs`
// writes it. `node .ci/features.mjs --change` prints what has changed since the commit that the page names. No check
// fails because of a number here.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isProgram, root } from './shell.mjs';

export const PAGE = 'docs/internals/features.md';
const COUNTED = ['src', 'test', 'docs'];
const TEXTS = /^(?:src\/.*\.(?:tsx?|lua|css|html)|test\/.*\.ts|docs\/.*\.md)$/;

/**
 * feature | who asked for it | patterns. A file belongs to the first row with a pattern that its path contains.
 * Patterns without a slash also select tests and pages. `*` stands for any characters but a slash.
 */
const FEATURES = `
\`weir migrate\` | | migrate
\`weir replay\` | ratelimit#218, ratelimit#293, gateway#6786 | replay
\`weir diff\`, and the changes of a reload | | config/diff diff.ts differ change-log rollout
\`weir top\` | | telemetry/top cli/top admin/top operate/top screen top-
buckets: show, reset, grant, release, and their announcement | ratelimit#191, ratelimit#422, kgateway#2785 | admin/buckets cli/bucket buckets.md storage/controls service/controls integration/buckets open-bucket at-three known-
the page, and its charts | | src/page /page/ operate/page telemetry/history images
who may use the debug port | | admin-access admin-tokens tokens-file operate/access cross-site
\`weir explain\` and \`check-config\` | | config/show explain check-config manifests check-report check-unmatched check-options load-options commands
\`weir check\`, \`health\`, \`init\` | | cli/call cli/check.ts cli/health cli/init without-envoy start.md
reservations and limits on concurrent requests | limitador#506, envoy#41219, ai-gateway#680 | hold concurrency reservation settle estimates oldest-ends settlement-queue
limits of each customer (plans) | gateway#9212, ai-gateway#2223, ratelimit#927 | plans plan- planned config/sources
priorities of classes in one limit | litellm#15119, envoy#14550, gateway#9653 | priorit class-nodes
leases: tokens taken in advance | envoy#14299, kgateway#14366, limitador#189 | leases. leased-key
soft limits and spill | ratelimit#1045, praxis-proxy/praxis#856 | soft-limit spill on-over
phases, schedules, percent | ratelimit#218, gateway#6786 | enforcement phase percent quotas-and-replaces candidate
charges, debt and refunds | envoy#12969, envoy#37548, ratelimit#1140 | charge debt refund
token buckets | ratelimit#32, ratelimit#269, istio#53053 | token-bucket running-bucket
windows, multiples and calendars | ratelimit#190, envoy#33277, ratelimit#743 | fixed-window calendar window-unit
patterns, regular expressions, addresses | ratelimit#235, ratelimit#653, envoy#43320 | policy/values matching
derived entries and paths | | derive policy/paths
several limits on one key | ratelimit#107, ratelimit#262, ratelimit#693 | shared-bucket policy/limits several-limits
headers, bodies, and metadata that names the rule | gateway#7003, envoy#41339, gateway#5693 | service/answer headers-and-bodies answers.md
warnings about unmatched requests | | unmatched
variables, files and statistics of envoyproxy/ratelimit | istio#56573, contour#6246, wso2/apk#2482 | reference telemetry/mapping cli/ratelimit go- inert-settings ratelimit-commands
statsd and dogstatsd | ratelimit#285 | statsd mogrifier stats-
policies from management servers (xDS) | ai-gateway#2347, ai-gateway#2460 | xds ads- discovery quota-policy
reloads that keep valid domains | ratelimit#367, ratelimit#379, ratelimit#287 | config/files config/threads reload
\`/json\`, and overrides in requests | | codec/json json-endpoint override json-codec
Redis Cluster, Sentinel, several servers | ratelimit#125, ratelimit#750, ratelimit#651 | cluster sentinel sharded several-servers slot
logins that change | ratelimit#799, ratelimit#563 | login
answers without Redis, and local shares | ratelimit#462, emissary#4465, agentgateway#3523 | store-failure local
deny cache | | denial deny-cache
Redis | ratelimit#462, ratelimit#80, ratelimit#26 | redis resp-
buckets in memory | ratelimit#315 | storage/memory memory-store
metrics, alerts, dashboards | ratelimit#285, ratelimit#773, gateway#6801 | src/telemetry unit/telemetry server/metrics runbooks alerts metrics prometheus
decision log | gateway#7003, ratelimit#341 | decision-log record
traces | | tracing trace otlp
worker processes | | workers worker
TLS | ratelimit#587 | tls
shared: HTTP/2 and gRPC | ratelimit#419, ratelimit#322 | h2 src/grpc /grpc/ conformance fuzz codec proto plain-stack
shared: HTTP and the debug port | | src/http /http/ src/admin endpoints
shared: reading policies | | src/config config/yaml config/read policy-keys format.md recipes
shared: the tree of rules and its names | | src/policy unit/policy property/policy
shared: deciding a request | | src/service unit/service src/limiter limiter concepts
shared: wiring, settings, drain | | src/server unit/server settings src/storage drain
shared: the command line | | src/cli unit/cli mistakes
shared: helpers | | src/runtime runtime src/*.ts
`
  .trim()
  .split('\n')
  .map((line) => {
    const [name, asked, patterns] = line.split('|').map((cell) => cell.trim());
    // An empty pattern would match every file.
    const parts = patterns.split(/ +/).map((one) => one.replaceAll('.', '\\.').replaceAll('*', '[^/]*'));
    return { name, asked, pattern: new RegExp(parts.join('|')) };
  });
/** Tests and pages that are about the whole product. A source file must have another row. */
const REST = { name: 'shared: benchmarks, chaos, attacks, test support, the rest of the manual', asked: '' };

/** Returns the lines of each counted file, now or in a commit: Map of path to number. */
function linesOf(commit) {
  const args = ['grep', '-I', '-c', '', ...(commit === undefined ? [] : [commit]), '--', ...COUNTED];
  const output = execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    stdio: 'pipe',
  });
  const counts = new Map();
  for (const line of output.trimEnd().split('\n')) {
    const [, path, count] = /^(?:[0-9a-f]+:)?(.*):(\d+)$/.exec(line);
    if (path !== PAGE && TEXTS.test(path)) counts.set(path, Number(count));
  }
  return counts;
}

/** Returns, by feature: lines below src, test and docs, and the rooms of src. Also the source files without a row. */
function count(lines) {
  const rows = new Map(
    [...FEATURES, REST].map((row) => [row, { src: 0, test: 0, docs: 0, rooms: new Set() }]),
  );
  const lost = [];
  for (const [path, number] of lines) {
    const [top, room] = path.split('/');
    const row = FEATURES.find(({ pattern }) => pattern.test(path)) ?? REST;
    if (row === REST && top === 'src') lost.push(path);
    const sums = rows.get(row);
    sums[top] += number;
    if (top === 'src') sums.rooms.add(room.includes('.') ? 'main' : room);
  }
  return { rows, lost };
}

/** Returns the commit that the page names, and its counts, or undefined in a copy without this commit. */
function base() {
  const commit = /commit `([0-9a-f]+)`/.exec(readFileSync(join(root, PAGE), 'utf8'))?.[1];
  try {
    return { commit, ...count(linesOf(commit)) };
  } catch {
    return undefined;
  }
}

const number = (value) => (value === 0 ? '–' : value.toLocaleString('en-US'));
const sign = (value) => (value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : '–');

/** Returns the table of the page. Without the base commit, the columns of changes are empty. */
export function table() {
  const { rows, lost } = count(linesOf());
  const before = base();
  const line = (name, now, old, rooms, asked) => {
    const cells = ['src', 'test', 'docs'].flatMap((part) => [
      number(now[part]),
      old === undefined ? '' : sign(now[part] - old[part]),
    ]);
    return `| ${name} | ${cells.join(' | ')} | ${rooms} | ${asked || '–'} |`;
  };
  const sum = (all) =>
    [...all.values()].reduce(
      (one, other) => ({
        src: one.src + other.src,
        test: one.test + other.test,
        docs: one.docs + other.docs,
      }),
      { src: 0, test: 0, docs: 0 },
    );
  return [
    '| feature | source | | tests | | manual | | rooms | asked for in |',
    '|---|--:|--:|--:|--:|--:|--:|---|---|',
    ...[...rows].map(([row, now]) =>
      line(row.name, now, before?.rows.get(row), [...now.rooms].sort().join(', '), row.asked),
    ),
    line('**all**', sum(rows), before && sum(before.rows), '', ''),
    ...(lost.length === 0
      ? []
      : ['', 'These source files have no row:', '', ...lost.map((path) => `- \`${path}\``)]),
  ].join('\n');
}

/**
 * Returns what is wrong with the list of features: rows that no file matches, for example because an earlier pattern
 * matches too much, and source files without a row.
 */
export function faults() {
  const { rows, lost } = count(linesOf());
  const idle = [...rows].filter(([, { src, test, docs }]) => src + test + docs === 0);
  return [
    ...idle.map(([{ name }]) => `.ci/features.mjs: no file matches the row "${name}"; correct the patterns`),
    ...lost.map(
      (path) => `.ci/features.mjs: no row matches ${path}; add a pattern to the row of its feature`,
    ),
  ];
}

/** Returns a text with only the first and the last column of its tables: the features, and who asked for them. */
export function withoutNumbers(text) {
  return text.replaceAll(/^(\| [^|]* \|).*(\| [^|]* \|)$/gm, '$1$2');
}

/** Returns one line for each feature whose source has changed since the base commit. */
export function change() {
  const before = base();
  if (before === undefined) return 'features: the commit that the page names is not in this copy';
  const { rows, lost } = count(linesOf());
  const lines = [...rows].flatMap(([row, now]) => {
    const old = before.rows.get(row);
    if (now.src === old.src) return [];
    return [`  ${sign(now.src - old.src).padStart(7)} to ${number(now.src).padStart(6)}  ${row.name}`];
  });
  const total = [...rows].reduce((all, [row, now]) => all + now.src - before.rows.get(row).src, 0);
  return [
    `features: ${sign(total)} lines of source since ${before.commit}`,
    ...lines,
    ...lost.map((path) => `  no feature: ${path}`),
  ].join('\n');
}

if (isProgram(import.meta.url))
  process.stdout.write(`${process.argv.includes('--change') ? change() : table()}\n`);
