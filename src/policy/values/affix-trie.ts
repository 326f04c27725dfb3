/** Steps for each visited node of a trie. */
const NODE_STEPS = 12;

/** A node of a radix trie, whose edges are labeled with strings. */
class RadixNode<Held> {
  /** Label of the edge from the parent; a lookup by the first unit has already compared that unit. */
  label: string;
  /** By the first unit of their labels. */
  children: Map<number, RadixNode<Held>> | undefined;
  held: Held | undefined;

  constructor(label: string) {
    this.label = label;
  }
}

/** The patterns that share a prefix. */
interface Ends<Item> {
  /** Item of the pattern that has no suffix (`prefix*`). */
  prefixOnly: Item | undefined;
  /** Items of the other patterns, by reversed suffix. */
  suffixes: RadixNode<Item> | undefined;
}

/**
 * Patterns with one star, `prefix*suffix`, each with an item. A lookup finds all prefixes of the value, and for each of
 * them all suffixes that match. The cost depends on the longest pattern, not on the number of patterns. Memory is
 * proportional to the total length of the patterns.
 */
export class AffixTrie<Item> {
  private readonly root = new RadixNode<Ends<Item>>('');

  /** Returns the item of a prefix and a suffix. `make` creates the item if necessary. */
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
   * Appends the items that match `text` from `from` to `to` to `found`, in no order. Returns the number of steps (see
   * MatchWork).
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

/** Walks from the end of the text back to `from`. */
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

/** Returns the node of `text`, created if needed. */
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
  const maxUnits = Math.min(label.length, text.length - at);
  let common = 0;
  while (common < maxUnits && label.charCodeAt(common) === text.charCodeAt(at + common)) common++;
  return common;
}

/** Reverses the units: surrogate pairs are swapped, but also in the text to compare. */
function reversed(text: string): string {
  let back = '';
  for (let i = text.length - 1; i >= 0; i--) back += text.charAt(i);
  return back;
}
