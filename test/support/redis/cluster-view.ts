/** A node as another one, or itself, describes it: a line of CLUSTER NODES. */
export interface NodeLine {
  readonly id: string;
  readonly port: number;
  /** The node that was asked. */
  readonly isMyself: boolean;
  readonly isMaster: boolean;
  /** Held for dead by the majority of masters. */
  readonly isFailed: boolean;
  /** The master that it follows; `-` for none. */
  readonly masterId: string;
  readonly epoch: number;
  /** First and last slot of each range that it serves. */
  readonly slots: readonly (readonly [first: number, last: number])[];
  /** Whether a slot is on its way to it or away from it. */
  readonly isMoving: boolean;
}

/** What CLUSTER NODES answers, in lines. */
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

/** Whether it serves `slot`. */
export function servesSlot({ isMaster, slots }: NodeLine, slot: number): boolean {
  return isMaster && slots.some(([first, last]) => first <= slot && slot <= last);
}

/**
 * What nodes must agree on: who lives, who follows whom, who serves which slots, and since which change. A node that
 * has not heard of the latest change would not count its next one as newer, and lose again to an old message what it
 * got.
 */
export function agreedOf(lines: readonly NodeLine[]): string {
  return lines
    .filter(({ isFailed }) => !isFailed)
    .map(({ id, masterId, isMaster, epoch, slots }) =>
      [id, masterId, isMaster ? epoch : '', ...slots].join(' '),
    )
    .sort()
    .join('\n');
}
