import { randomUUID } from 'node:crypto';
import { RenderQueue } from '../../http/text-view.js';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { OVERRIDE_LABEL } from '../../service/request-context.js';
import type { AdminAnswer, AdminService } from '../admin-endpoint.js';
import { quotedText, unknownDomain } from '../buckets/read-question.js';
import { answerTop, type CheckedTopQuestion, readTopQuestion, type TopAnswerOptions } from './top-answer.js';

/** Domains of a server that started without a policy. */
const NO_DOMAINS: PolicySet['domains'] = new Map();

export interface TopServiceOptions extends TopAnswerOptions {
  /** TOP_BUCKETS. */
  readonly capacity: number;
  policies(): PolicySet | undefined;
}

function failure(status: number, error: string): AdminAnswer {
  return { status, body: { error } };
}

/**
 * Returns the service of `/top` on the debug port. Questions are answered one at a time, so that the memory for an
 * answer is needed only once.
 */
export function topService(options: TopServiceOptions): AdminService {
  const server = randomUUID();
  const queue = new RenderQueue();
  const answer = async (asked: unknown): Promise<AdminAnswer> => {
    const question = readTopQuestion(asked);
    if (typeof question === 'string') return failure(400, question);
    if (options.capacity === 0) {
      return failure(
        503,
        'weir tracks no buckets, because TOP_BUCKETS is 0; unset TOP_BUCKETS, or set TOP_BUCKETS to a ' +
          'number such as 500',
      );
    }
    const body = await queue.run(() => answerTop(question, options));
    if (body === undefined) return failure(503, 'no worker process answers; try again');
    // A domain or rule that was removed from the policies may still have rows of the last hour.
    const unknown = body.top.length > 0 ? undefined : unknownName(question, options.policies());
    return unknown === undefined ? { status: 200, body: { server, ...body } } : failure(400, unknown);
  };
  return {
    path: '/top',
    help: 'the buckets with the most denied requests or used hits; see weir top --help',
    rightFor: () => 'read',
    answer,
  };
}

/**
 * Returns an error if the current policies do not contain a domain or rule of the question, because an answer without
 * rows would suggest that no request was denied. Returns undefined if all names are known.
 */
function unknownName(
  { domain, rule }: Pick<CheckedTopQuestion, 'domain' | 'rule'>,
  policies: PolicySet | undefined,
): string | undefined {
  const domains = policies?.domains ?? NO_DOMAINS;
  const policy = domain === undefined ? undefined : domains.get(domain);
  if (domain !== undefined && policy === undefined) return unknownDomain(domains, domain);
  if (rule === undefined || rule === OVERRIDE_LABEL) return undefined;
  const searched = policy === undefined ? [...domains.values()] : [policy];
  if (searched.some(({ rules }) => rules.some(({ path }) => path === rule))) return undefined;
  const where = domain === undefined ? '' : ` in the domain ${quotedText(domain)}`;
  return `no policy in effect has the rule ${quotedText(rule)}${where}; weir explain shows the path of each rule`;
}
