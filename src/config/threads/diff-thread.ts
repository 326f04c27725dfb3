/** Worker thread that PolicyDiffer starts for one comparison. */
import type { PolicySet } from '../../policy/compiled-policy.js';
import { summarizeChanges } from '../diff/render-diff.js';
import { runTask } from './policy-task.js';

runTask<number>((nowMicros, [before, after]) =>
  summarizeChanges(before as PolicySet, after as PolicySet, nowMicros),
);
