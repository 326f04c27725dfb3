/** Steps for each node of a trie that is visited. */
const NODE_STEPS = 12;

/** A node of a trie whose edges are labelled with texts. */
class RadixNode<Held> {
  /** What leads here from the node above; the rest of it once its first unit is known. */
  label: string;
  /** By the first unit of their labels. */
  children: Map<number, RadixNode<Held>> | undefined;
  held: Held | undefined;

  constructor(label: string) {
    this.label = label;
  }
}

/** What begins with one prefix. */
interface Ends<Item> {
  /** The prefix alone. */
  prefixOnly: Item | undefined;
  /** By suffixes, read from their ends. */
  suffixes: RadixNode<Item> | undefined;
}

/**
 * Texts with one star, `prefix*suffix`, each with an item. All that match a text are found in a walk over its
 * beginning, and for each prefix that it has, over its end: however many there are, no further than the longest of them
 * reach. Takes memory in proportion to their number and texts.
 */
export class AffixTrie<Item> {
  private readonly root = new RadixNode<Ends<Item>>('');

  /** The item of these very two; what `make` gives is put there if there is none. */
  put(prefix: string, suffix: string, make: () => Item): Item {
    const node = insert(this.root, prefix);
    node.held ??= { prefixOnly: undefined, suffixes: undefined };
    if (suffix === '') {
      node.held.prefixOnly ??= make();
      return node.held.prefixOnly;
    }
    node.held.suffixes ??= new RadixNode('');
    const end = insert(node.held.suffixes, reversed(suffix));
    end.held ??= make();
    return end.held;
  }

  /**
   * Adds to `found` what matches `text` from `from` to `to`, in no order. Returns how many steps (see MatchWork) that
   * took.
   */
  collect(text: string, from: number, to: number, found: Item[]): number {
    let node = this.root;
    let at = from;
    let steps = 0;
    for (;;) {
      steps += NODE_STEPS;
      const { held, children } = node;
      if (held !== undefined) {
        if (held.prefixOnly !== undefined) found.push(held.prefixOnly);
        if (held.suffixes !== undefined) steps += collectSuffixes(held.suffixes, text, at, to, found);
      }
      if (children === undefined || at === to) return steps;
      const child = children.get(text.charCodeAt(at));
      if (child === undefined) return steps;
      const { length } = child.label;
      steps += length >> 2;
      if (length > to - at || (length > 1 && !text.startsWith(child.label, at))) return steps;
      at += length;
      node = child;
    }
  }
}

/** Walks from the end of the text back, no further than `from`. */
function collectSuffixes<Item>(
  root: RadixNode<Item>,
  text: string,
  from: number,
  to: number,
  found: Item[],
): number {
  let node = root;
  let at = to;
  let steps = 0;
  for (;;) {
    steps += NODE_STEPS;
    if (node.held !== undefined) found.push(node.held);
    if (node.children === undefined || at === from) return steps;
    const child = node.children.get(text.charCodeAt(at - 1));
    if (child === undefined) return steps;
    const { label } = child;
    steps += label.length >> 2;
    if (label.length > at - from) return steps;
    for (let i = 1; i < label.length; i++) {
      if (label.charCodeAt(i) !== text.charCodeAt(at - 1 - i)) return steps;
    }
    at -= label.length;
    node = child;
  }
}

/** The node that `text` leads to, made if it is not there. */
function insert<Held>(root: RadixNode<Held>, text: string): RadixNode<Held> {
  let node = root;
  let at = 0;
  while (at < text.length) {
    node.children ??= new Map();
    const unit = text.charCodeAt(at);
    const child = node.children.get(unit);
    if (child === undefined) {
      const leaf = new RadixNode<Held>(text.slice(at));
      node.children.set(unit, leaf);
      return leaf;
    }
    const common = commonLength(child.label, text, at);
    at += common;
    if (common === child.label.length) {
      node = child;
      continue;
    }
    const middle = new RadixNode<Held>(child.label.slice(0, common));
    child.label = child.label.slice(common);
    middle.children = new Map([[child.label.charCodeAt(0), child]]);
    node.children.set(unit, middle);
    node = middle;
  }
  return node;
}

function commonLength(label: string, text: string, at: number): number {
  const most = Math.min(label.length, text.length - at);
  let common = 0;
  while (common < most && label.charCodeAt(common) === text.charCodeAt(at + common)) common++;
  return common;
}

/** Unit by unit: the halves of a character change places, in the text that is held against it, too. */
function reversed(text: string): string {
  let back = '';
  for (let i = text.length - 1; i >= 0; i--) back += text.charAt(i);
  return back;
}
