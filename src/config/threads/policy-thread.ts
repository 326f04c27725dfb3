/** Worker thread that ThreadPolicyLoader starts for one load. */
import { readPolicies } from '../files/load-policies.js';
import { runLoad } from './load-thread.js';
import type { LoadRequest } from './policy-loader.js';

runLoad<LoadRequest>(({ places, options, before }) => readPolicies(places, options, before));
