/** Worker thread that ThreadPolicyLoader starts for one load. */
import { readPolicies } from '../files/load-policies.js';
import { type LoadRequest, runLoad } from './load-thread.js';

runLoad<LoadRequest>(({ places, options, before }) => readPolicies(places, options, before));
