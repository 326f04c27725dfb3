/** Worker thread that ThreadPolicyLoader starts for one load. */
import { workerData } from 'node:worker_threads';
import { readPolicies } from '../files/load-policies.js';
import { sendLoaded } from './load-thread.js';
import type { LoadRequest } from './load-transfer.js';
import { lowerThreadPriority } from './thread-priority.js';

lowerThreadPriority();
const request = workerData as LoadRequest;
sendLoaded(readPolicies(request.places, request.options, request));
