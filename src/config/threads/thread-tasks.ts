/** The script of all threads for policies. Each task loads only the code that it needs. */
import { workerData } from 'node:worker_threads';
import type { PolicySet } from '../../policy/compiled-policy.js';
import type { RowsRequest } from '../sources/redis-rows.js';
import type { UpdateRequest } from '../xds/load-update.js';
import type { LoadRequest, LoadTask } from './load-thread.js';
import type { ConfigRequest, TaskData } from './policy-task.js';
import { lowerThreadPriority, type ThreadInput, type ThreadTask } from './thread.js';

const loadThread = (): typeof import('./load-thread.js') => require('./load-thread.js');
const policyTask = (): typeof import('./policy-task.js') => require('./policy-task.js');

const TASKS: Readonly<Record<ThreadTask, (data: never) => void>> = {
  'loads policies': ({ request, batches }: LoadTask<LoadRequest>) => {
    const { readPolicies } =
      require('../files/load-policies.js') as typeof import('../files/load-policies.js');
    loadThread().sendLoaded(readPolicies(request.places, request.options, request.before), batches);
  },
  'loads an update': ({ request, batches }: LoadTask<UpdateRequest>) => {
    const { readUpdate } = require('../xds/load-update.js') as typeof import('../xds/load-update.js');
    const { createDiscoveryCodec } = require('../xds/discovery.js') as typeof import('../xds/discovery.js');
    const { resources, options, before } = request;
    loadThread().sendLoaded(readUpdate(resources, createDiscoveryCodec(), options, before), batches);
  },
  'compares policies': ({ data: nowMicros, sets }: TaskData<number>) => {
    const { summarizeChanges } = require('../diff/render-diff.js') as typeof import('../diff/render-diff.js');
    policyTask().receivePolicies(sets, ([before, after]) =>
      summarizeChanges(before as PolicySet, after as PolicySet, nowMicros),
    );
  },
  'renders policies': ({ data: { form, ...shown }, sets }: TaskData<ConfigRequest>) => {
    const { rlconfigText } = require('../show/dump.js') as typeof import('../show/dump.js');
    policyTask().receivePolicies(sets, ([policySet]) =>
      new TextEncoder().encode(rlconfigText(form, { ...shown, policySet })),
    );
  },
  'reads rows': (request: RowsRequest) => {
    const { answerUpdates } =
      require('../sources/redis-rows.js') as typeof import('../sources/redis-rows.js');
    answerUpdates(request);
  },
};

lowerThreadPriority();
const { task, data } = workerData as ThreadInput;
TASKS[task](data as never);
