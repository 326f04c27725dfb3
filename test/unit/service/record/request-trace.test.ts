/* Contents of a request's span. */
import { expect, test } from '@jest/globals';
import type { Descriptor } from '../../../../src/codec/messages.js';
import { type BucketStore, StorageError } from '../../../../src/limiter/bucket-store.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../../src/service/caller.js';
import type { DecisionSpan } from '../../../../src/service/record/request-trace.js';
import { Decider, type DeciderOptions, descriptor } from '../../../support/policy/decider.js';

const POLICY = `
domain: d
descriptors:
  - { key: one, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: llm, rate_limit: { concurrency: { max: 1 } } }
  - { key: none, rate_limit: { unit: minute, requests_per_unit: 0 } }
`;

function recorded(options?: DeciderOptions) {
  const told: string[] = [];
  const decider = new Decider(POLICY, options);
  const span: DecisionSpan = {
    decided: (...all) => told.push(`decided ${all.join(' ')}`.trim()),
    storeCalled(limits) {
      told.push(`asked ${limits}`);
      return {
        ended: (error) => told.push(error === undefined ? 'answered' : `failed ${error.reason}`),
        notCalled: () => told.push('not called'),
      };
    },
  };
  const ask = async (...descriptors: Descriptor[]): Promise<readonly string[]> => {
    told.length = 0;
    const message = decider.codec.encodeRequest({ domain: 'd', descriptors, hitsAddend: 0 });
    await decider.service.handle(message, { ...CALLER_WITHOUT_DEADLINE, trace: { traceId: '', span } });
    return told;
  };
  return { ask };
}

test('contains the call to the store and the rule that decided', async () => {
  const { ask } = recorded();
  expect(await ask(descriptor(['one=a']))).toEqual(['asked 1', 'answered', 'decided d OK one']);
  expect(await ask(descriptor(['one=b']), descriptor(['none=a']))).toEqual([
    'asked 2',
    'answered',
    'decided d OVER_LIMIT none',
  ]);
  expect(await ask(descriptor(['other=a']))).toEqual(['decided d OK']);
});

test('contains what happened to the holds of the request', async () => {
  const { ask } = recorded();
  expect(await ask(descriptor(['llm=a']))).toEqual(['asked 1', 'answered', 'decided d OK llm  placed']);
  expect(await ask(descriptor(['hold=guess']))).toEqual(['decided d OK   malformed']);
});

test('contains a failure of the store, but no call if the store answered synchronously', async () => {
  const broken: BucketStore = {
    take: async () => new StorageError('timeout', 'late'),
    close: async () => {},
  };
  expect(await recorded({ store: broken }).ask(descriptor(['one=a']))).toEqual(['asked 1', 'failed timeout']);
  const outcome = { overLimit: true, remaining: 0, waitMicros: 1, used: 1, uncollectedHits: 0, cached: true };
  const cached: BucketStore = { take: () => [outcome], close: async () => {} };
  expect(await recorded({ store: cached }).ask(descriptor(['one=a']))).toEqual([
    'asked 1',
    'not called',
    'decided d OVER_LIMIT one',
  ]);
});
