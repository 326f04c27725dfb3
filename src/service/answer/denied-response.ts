import type { HeaderValue } from '../../codec/messages.js';
import type { DeniedResponse } from '../../policy/rule.js';
import type { MatchedTake } from '../request-context.js';
import type { DescribedLimit } from './denial.js';
import { canNeverPass, DENIES, isDecided, rankIn } from './denial.js';
import { MAX_LISTED, quotaName } from './quota-policy.js';

/** The body of a denied request. */
export interface DeniedBody {
  readonly body: Uint8Array;
  /** Absent: Envoy sends text/plain. */
  readonly contentType: HeaderValue | undefined;
}

const PROBLEM_TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
const PROBLEM_TITLE = 'Request cannot be satisfied as assigned quota has been exceeded';
const NEVER_PASSES =
  'The request exceeds the maximum that the limit can ever allow, so it will always be denied.';

const encoder = new TextEncoder();
const textBodies = new WeakMap<DeniedResponse, DeniedBody>();
/** Encoded bodies with one violated policy, which is the most frequent case, by the name of the policy. */
const problems = new Map<string, Uint8Array>();
/** Maximum number of cached bodies. Reloads change the names of rules, so the oldest bodies are removed. */
const MAX_CACHED_PROBLEMS = 1000;

/** The distinct names of the limits that deny, in order. */
function violatedPolicies({ take, takes, context }: DescribedLimit): readonly string[] {
  const names = new Set([quotaName(take)]);
  for (let i = 0; i < takes.length && names.size < MAX_LISTED; i++) {
    const one = takes[i] as MatchedTake;
    if (isDecided(one) && rankIn(context, one) === DENIES) names.add(quotaName(one));
  }
  return [...names];
}

function problem(names: readonly string[], detail?: string): Uint8Array {
  const document = {
    type: PROBLEM_TYPE,
    title: PROBLEM_TITLE,
    status: 429,
    detail,
    'violated-policies': names,
  };
  return encoder.encode(JSON.stringify(document));
}

function problemOf(described: DescribedLimit): Uint8Array {
  const names = violatedPolicies(described);
  if (canNeverPass(described.take)) return problem(names, NEVER_PASSES);
  const [only] = names;
  if (only === undefined || names.length > 1) return problem(names);
  let body = problems.get(only);
  if (body === undefined) {
    body = problem(names);
    const [oldest] = problems.keys();
    if (problems.size >= MAX_CACHED_PROBLEMS && oldest !== undefined) problems.delete(oldest);
    problems.set(only, body);
  }
  return body;
}

const PROBLEM_WITHOUT_POLICY = problem([]);

const PROBLEM_JSON: HeaderValue = { key: 'content-type', value: 'application/problem+json' };

/**
 * Returns the body of a denied request: the `denied_response` of the described rule, or of the policy file. Undefined
 * if neither has a body.
 */
export function deniedBody(described: DescribedLimit): DeniedBody | undefined {
  const denied = described.take.rule?.deniedResponse ?? described.context.policy.deniedResponse;
  if (denied?.preset === 'problem+json') return { body: problemOf(described), contentType: PROBLEM_JSON };
  return denied === undefined ? undefined : textBody(denied);
}

/** Returns the body of a denial without a known limit; undefined if `denied` has no body. */
export function bodyWithoutLimit(denied: DeniedResponse | undefined): DeniedBody | undefined {
  if (denied?.preset === 'problem+json') return { body: PROBLEM_WITHOUT_POLICY, contentType: PROBLEM_JSON };
  return denied === undefined ? undefined : textBody(denied);
}

function textBody(denied: DeniedResponse): DeniedBody | undefined {
  if (denied.body === '') return undefined;
  let text = textBodies.get(denied);
  if (text === undefined) {
    const { body, contentType } = denied;
    text = {
      body: encoder.encode(body),
      contentType: contentType === '' ? undefined : { key: 'content-type', value: contentType },
    };
    textBodies.set(denied, text);
  }
  return text;
}
