import { waitFor } from '../../support/process/wait-for.js';
import type { SingleTopology } from '../topology/single-topology.js';
import type { Fault } from './fault.js';

/** Command that closes the connections of all other clients, as managed services do when credentials expire. */
const CLOSE_CONNECTIONS = ['CLIENT', 'KILL', 'TYPE', 'normal'] as const;

export const LOGIN_FAULTS: readonly Fault<SingleTopology>[] = [
  {
    name: 'a wrong password, then the correct one',
    effect: 'rejected logins',
    run: async (context) => {
      const { topology, random } = context;
      const { master } = topology;
      const before = await rejectedLogins(topology);
      const password = `p${random.uint32()}`;
      await topology.requirePassword(password);
      await master.command(...CLOSE_CONNECTIONS);
      await context.sleep(context.duration(500, 3000));
      await waitFor('a rejected login', async () =>
        (await rejectedLogins(topology)) > before ? true : undefined,
      );
      topology.writePassword(password);
      context.markAvailable();
      return (await rejectedLogins(topology)) - before;
    },
  },
  {
    name: 'a password is rotated',
    effect: 'reconnects with the new password',
    run: async (context) => {
      const { topology, random } = context;
      const { master } = topology;
      const before = topology.proxy.accepted;
      for (let times = 2 + random.below(2); times > 0; times--) {
        const old = master.password;
        const password = `p${random.uint32()}`;
        // Both passwords are valid for a while, as during the rotation of secrets.
        await master.command('ACL', 'SETUSER', 'default', `>${password}`);
        topology.writePassword(password);
        await context.sleep(context.duration(300, 2000));
        master.password = password;
        await master.command('ACL', 'SETUSER', 'default', `<${old}`);
        await master.command(...CLOSE_CONNECTIONS);
        context.markAvailable();
        await context.sleep(context.duration(300, 1000));
      }
      context.markAvailable();
      return topology.proxy.accepted - before;
    },
  },
];

async function rejectedLogins({ master }: SingleTopology): Promise<number> {
  return (await master.errors('WRONGPASS')) + (await master.errors('NOAUTH'));
}
