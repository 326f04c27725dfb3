/** Content of an element. Strings are always added as text, never as markup. */
export type Child = Node | string | undefined;

/**
 * Attributes by name. `undefined` and `false` omit the attribute. A function listens to the event whose name follows
 * `on`.
 */
export type Attributes = Readonly<
  Record<string, string | number | boolean | undefined | ((event: Event) => void)>
>;

function fill(element: Element, attributes: Attributes, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice('on'.length), value);
    else if (value !== undefined && value !== false)
      element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== undefined));
}

/** Creates an HTML element. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** Creates an SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  fill(element, attributes, children);
  return element;
}

/** Returns the element of page.html with this id. Throws an Error if the id is unknown. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`page.html has no #${id}`);
  return element;
}

let ids = 0;

/** Returns a unique id for an element. */
export function freshId(): string {
  return `w${++ids}`;
}

/** Returns text that only screen readers read. */
export function spoken(text: string): HTMLElement {
  return el('span', { class: 'spoken' }, text);
}

/** Creates a button. */
export function button(
  label: Child,
  onclick: (event: Event) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  return el('button', { type: 'button', onclick, ...attributes }, label);
}

/** A part of the page that is rendered again only if its data changed, so that focus and selection are kept. */
export class RenderedPart<T> {
  readonly #place: Element;
  readonly #make: (shown: T) => readonly Child[];
  #last: string | undefined;

  constructor(place: Element, make: (shown: T) => readonly Child[]) {
    this.#place = place;
    this.#make = make;
  }

  /** Shows JSON data. */
  show(shown: T): void {
    const text = JSON.stringify(shown);
    if (text === this.#last) return;
    this.#last = text;
    this.#place.replaceChildren(...this.#make(shown).filter((child) => child !== undefined));
  }
}
