import { waitFor } from '../../support/process/wait-for.js';
import type { SingleTopology } from '../topology/single-topology.js';
import type { Fault } from './fault.js';

/** Closes the connections of all clients except the harness, as managed services do with expired credentials. */
const CUT = ['CLIENT', 'KILL', 'TYPE', 'normal'] as const;

export const LOGIN_FAULTS: readonly Fault<SingleTopology>[] = [
  {
    name: 'a wrong password, then the correct one',
    counts: 'rejected logins',
    run: async (stage) => {
      const { topology, random } = stage;
      const { master } = topology;
      const before = await refused(topology);
      const password = `p${random.uint32()}`;
      await topology.requirePassword(password);
      await master.command(...CUT);
      await stage.sleep(stage.lasting(500, 3000));
      await waitFor('a refused login', async () => ((await refused(topology)) > before ? true : undefined));
      topology.tellPassword(password);
      stage.serves();
      return (await refused(topology)) - before;
    },
  },
  {
    name: 'a password is rotated',
    counts: 'reconnects with the new password',
    run: async (stage) => {
      const { topology, random } = stage;
      const { master } = topology;
      const before = topology.proxy.accepted;
      for (let times = 2 + random.below(2); times > 0; times--) {
        const old = master.password;
        const password = `p${random.uint32()}`;
        // Both passwords are valid for a while, as during the rotation of secrets.
        await master.command('ACL', 'SETUSER', 'default', `>${password}`);
        topology.tellPassword(password);
        await stage.sleep(stage.lasting(300, 2000));
        master.password = password;
        await master.command('ACL', 'SETUSER', 'default', `<${old}`);
        await master.command(...CUT);
        stage.serves();
        await stage.sleep(stage.lasting(300, 1000));
      }
      stage.serves();
      return topology.proxy.accepted - before;
    },
  },
];

async function refused({ master }: SingleTopology): Promise<number> {
  return (await master.errors('WRONGPASS')) + (await master.errors('NOAUTH'));
}
