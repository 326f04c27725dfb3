/** Worker thread that XdsSource starts for one update. */
import { runLoad } from '../threads/load-thread.js';
import { createDiscoveryCodec } from './discovery.js';
import { readUpdate, type UpdateRequest } from './load-update.js';

runLoad<UpdateRequest>(({ resources, options, before }) =>
  readUpdate(resources, createDiscoveryCodec(), options, before),
);
