import { type Client, type ServiceError, status } from '@grpc/grpc-js';
import { createClientCodec } from '../codec/client-codec.js';
import { CODE, type RateLimitResponse } from '../codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../codec/rls-definition.js';
import { failureAdvice } from './call/advice.js';
import { askServer, openClient } from './call/channel.js';
import { type CheckOptions, readCheckOptions } from './check-options.js';
import { type CheckResult, checkJson, checkTable } from './check-report.js';
import { whyUnmatchedIn } from './check-unmatched.js';
import { CommandError, EXIT, type Io, PROGRESS_MS } from './io.js';
import { domainNames, readServerPolicies, type ServerPolicies } from './server-policies.js';
import { severalDomains } from './value-text.js';

/** Output streams of the command, and the environment that names the server. */
export interface CheckIo extends Pick<Io, 'out' | 'err' | 'environment'> {
  /** Whether to print colors. */
  readonly colour: boolean;
}

/** Runs `weir check`. Resolves with exit code 0 if every call got an answer, else with 1. */
export async function checkCommand(args: readonly string[], io: CheckIo): Promise<number> {
  const options = readCheckOptions(args, io.environment);
  const { domain, policies, note } = await chooseDomain(options);
  const client = openClient(options.target, { 'grpc.max_receive_message_length': -1 });
  const tally = new Tally(options.count, options.hits ?? 1);
  const progress = setInterval(() => {
    io.err(`weir check: ${tally.finished} of ${options.count} calls done\n`);
  }, PROGRESS_MS);
  try {
    await makeCalls(client, options, domain, tally);
  } finally {
    clearInterval(progress);
    client.close();
  }
  const counted = tally.result();
  const { last } = counted;
  const unmatched = last === undefined ? [] : await whyUnmatchedIn(last, options, domain, policies);
  const result = { ...counted, unmatched };
  if (last !== undefined && note !== undefined) io.err(`weir check: ${note}\n`);
  io.out(options.json ? checkJson(result) : checkTable(result, io.colour));
  if (tally.failure === undefined) return EXIT.OK;
  const why = await failureAdvice(tally.failure, options.target, {
    method: SHOULD_RATE_LIMIT_PATH,
    timeoutMs: options.timeoutMs,
    whenLate: 'check the server, or raise --timeout',
  });
  throw new CommandError(EXIT.FAILED, `${tally.failures} of ${options.count} calls failed: ${why}`);
}

interface ChosenDomain {
  readonly domain: string;
  /** The policies that {@link domain} was chosen from; undefined with `--domain`. */
  readonly policies?: ServerPolicies;
  /** Sentence for the user if the domains of the server are unknown. */
  readonly note?: string;
}

/** Domain of the bundled policy. */
const BUNDLED_DOMAIN = 'open-api';

/** Returns the domain in `--domain`, or the only domain of the server. Throws if the server has several domains. */
async function chooseDomain(options: CheckOptions): Promise<ChosenDomain> {
  if (options.domain !== undefined) return { domain: options.domain };
  const policies = await readServerPolicies(options);
  const names = domainNames(policies);
  if (names === undefined) {
    const note =
      `the request is for the domain ${BUNDLED_DOMAIN}, because the domains of the server are unknown; specify ` +
      'the domain with --domain, or the debug port of the server with --debug <host:port>';
    return { domain: BUNDLED_DOMAIN, policies, note };
  }
  const [only = BUNDLED_DOMAIN, ...others] = names;
  if (others.length === 0) return { domain: only, policies };
  throw severalDomains('server', names);
}

/** Counts answers and errors. */
class Tally {
  finished = 0;
  failures = 0;
  /** First error; later errors are usually the same. */
  failure: ServiceError | undefined;
  readonly #errors = new Map<string, number>();
  readonly #latencies: Float64Array;
  #answers = 0;
  #ok = 0;
  #overLimit = 0;
  #last: RateLimitResponse | undefined;

  readonly #hits: number;

  constructor(count: number, hits: number) {
    this.#latencies = new Float64Array(count);
    this.#hits = hits;
  }

  answered(answer: RateLimitResponse, milliseconds: number): void {
    this.finished++;
    this.#latencies[this.#answers++] = milliseconds;
    this.#last = answer;
    if (answer.overallCode === CODE.OK) this.#ok++;
    else if (answer.overallCode === CODE.OVER_LIMIT) this.#overLimit++;
  }

  failed(error: ServiceError): void {
    this.finished++;
    this.failures++;
    this.failure ??= error;
    const name = status[error.code] ?? `code ${error.code}`;
    this.#errors.set(name, (this.#errors.get(name) ?? 0) + 1);
  }

  result(): Omit<CheckResult, 'unmatched'> {
    return {
      ok: this.#ok,
      overLimit: this.#overLimit,
      otherAnswers: this.#answers - this.#ok - this.#overLimit,
      errors: this.#errors,
      hits: this.#hits,
      last: this.#last,
      latencies: this.#latencies.subarray(0, this.#answers).sort(),
    };
  }
}

async function makeCalls(client: Client, options: CheckOptions, domain: string, tally: Tally): Promise<void> {
  const codec = createClientCodec();
  const { descriptors, hits } = options;
  // 0 hits of a request count as one hit, and 0 hits of a descriptor may start a request (`pair: oldest`). A refund of
  // 0 hits only looks.
  const request = Buffer.from(
    codec.encodeRequest({
      domain,
      descriptors:
        hits === 0
          ? descriptors.map((one) => ({ ...one, hitsAddend: 0, isNegativeHits: true }))
          : descriptors,
      hitsAddend: hits ?? 0,
    }),
  );
  let started = 0;
  const worker = async (): Promise<void> => {
    while (started < options.count) {
      started++;
      const before = performance.now();
      await askServer(client, codec, request, options.timeoutMs).then(
        (answer) => tally.answered(answer, performance.now() - before),
        (error: ServiceError) => tally.failed(error),
      );
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
}
