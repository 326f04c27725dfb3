/** A node as described by a node of the cluster: a line of CLUSTER NODES. */
export interface NodeLine {
  readonly id: string;
  readonly port: number;
  /** Whether this is the node that gave the description. */
  readonly isMyself: boolean;
  readonly isMaster: boolean;
  /** Considered failed by the majority of masters. */
  readonly isFailed: boolean;
  /** Id of the node's master; `-` if it has none. */
  readonly masterId: string;
  readonly epoch: number;
  /** First and last slot of each range that the node serves. */
  readonly slots: readonly (readonly [first: number, last: number])[];
  /** Whether a slot is being imported or migrated. */
  readonly isMoving: boolean;
}

/** Parses the answer to CLUSTER NODES. */
export function parseClusterNodes(text: string): NodeLine[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [id = '', address = '', flagList = '', masterId = '-', , , epoch = '', , ...ranges] = line
        .trim()
        .split(' ');
      const flags = flagList.split(',');
      return {
        id,
        port: Number(/:(\d+)@/.exec(address)?.[1]),
        isMyself: flags.includes('myself'),
        isMaster: flags.includes('master'),
        isFailed: flags.includes('fail') || flags.includes('handshake') || flags.includes('noaddr'),
        masterId,
        epoch: Number(epoch),
        slots: ranges
          .filter((range) => !range.startsWith('['))
          .map((range) => {
            const [first, last = first] = range.split('-').map(Number);
            return [first as number, last as number];
          }),
        isMoving: ranges.some((range) => range.startsWith('[')),
      };
    });
}

/** Returns whether a node serves `slot`. */
export function servesSlot({ isMaster, slots }: NodeLine, slot: number): boolean {
  return isMaster && slots.some(([first, last]) => first <= slot && slot <= last);
}

/**
 * Returns the facts that nodes must agree on: running nodes, their masters, their slots, and the epoch of the latest
 * change. A node without the latest change would give its next change an epoch that is too low, and an old message
 * could revert it.
 */
export function sharedFacts(lines: readonly NodeLine[]): string {
  return lines
    .filter(({ isFailed }) => !isFailed)
    .map(({ id, masterId, isMaster, epoch, slots }) =>
      [id, masterId, isMaster ? epoch : '', ...slots].join(' '),
    )
    .sort()
    .join('\n');
}
