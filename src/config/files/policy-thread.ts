/* Runs in a thread of its own, which ThreadPolicyLoader starts for one load. */
import { workerData } from 'node:worker_threads';
import { giveWay, sendLoaded } from './load-thread.js';
import { type LoadRequest, loadItems } from './load-transfer.js';

giveWay();
sendLoaded(loadItems(workerData as LoadRequest));
