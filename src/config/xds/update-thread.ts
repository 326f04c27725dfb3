/** Worker thread that XdsSource starts for one update. */
import { runLoad } from '../threads/load-thread.js';
import { createDiscoveryCodec } from './discovery.js';
import { readResponse, type UpdateRequest } from './load-update.js';

runLoad<UpdateRequest>((request) => readResponse(request, createDiscoveryCodec()));
