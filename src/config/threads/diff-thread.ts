/** Worker thread that PolicyDiffer starts for one comparison. */
import type { PolicySet } from '../../policy/policy-set.js';
import { summarizeChanges } from '../diff/change-summary.js';
import { runTask } from './policy-task.js';

runTask<number>((nowMicros, [before, after]) =>
  summarizeChanges(before as PolicySet, after as PolicySet, nowMicros),
);
