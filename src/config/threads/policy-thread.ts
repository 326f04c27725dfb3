/** Worker thread that ThreadPolicyLoader starts for one load. */
import { workerData } from 'node:worker_threads';
import { readPolicies } from '../files/load-policies.js';
import { lowerThreadPriority, sendLoaded } from './load-thread.js';
import { type LoadRequest, loadItems } from './load-transfer.js';

lowerThreadPriority();
const request = workerData as LoadRequest;
sendLoaded(loadItems(readPolicies(request.places, request.options, request)));
