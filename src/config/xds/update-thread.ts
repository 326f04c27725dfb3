/** Worker thread that UpdateLoader starts for one update. */
import { workerData } from 'node:worker_threads';
import { sendLoaded } from '../threads/load-thread.js';
import { lowerThreadPriority } from '../threads/thread-priority.js';
import { createDiscoveryCodec } from './discovery.js';
import { readResponse } from './load-update.js';
import type { UpdateRequest } from './update-loader.js';

lowerThreadPriority();
const request = workerData as UpdateRequest;
const codec = createDiscoveryCodec();
sendLoaded(readResponse(request.bytes, codec, request.options, request.rejected, request));
