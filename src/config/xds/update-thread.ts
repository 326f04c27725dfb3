/** Worker thread that UpdateLoader starts for one update. */
import { runLoad } from '../threads/load-thread.js';
import { createDiscoveryCodec } from './discovery.js';
import { readResponse } from './load-update.js';
import type { UpdateRequest } from './update-loader.js';

runLoad<UpdateRequest>(({ bytes, options, rejected, before }) =>
  readResponse(bytes, createDiscoveryCodec(), options, rejected, before),
);
