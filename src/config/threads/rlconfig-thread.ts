/** Worker thread that renderConfig starts for one text. */
import { rlconfigText } from '../show/dump.js';
import { type ConfigRequest, runTask } from './policy-task.js';

runTask<ConfigRequest>(({ form, ...shown }, [policySet]) =>
  new TextEncoder().encode(rlconfigText(form, { ...shown, policySet })),
);
