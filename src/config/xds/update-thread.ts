/** Worker thread that UpdateLoader starts for one update. */
import { runLoad } from '../threads/load-thread.js';
import { createDiscoveryCodec } from './discovery.js';
import { readResponse } from './load-update.js';
import type { UpdateRequest } from './update-loader.js';

runLoad<UpdateRequest>(({ response, options, rejected, before }) =>
  readResponse(response, createDiscoveryCodec(), options, rejected, before),
);
