/** What an element holds: texts stay texts, whatever stands in them. */
export type Child = Node | string | undefined;

/** Attributes by name; `undefined` and `false` leave one out. Functions listen to the event after `on`. */
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

/** An element of HTML. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An element of SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  fill(element, attributes, children);
  return element;
}

/** The element of page.html with this id. Throws an Error where there is none. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`page.html has no #${id}`);
  return element;
}

let ids = 0;

/** An id that no other element has. */
export function freshId(): string {
  return `w${++ids}`;
}

/** Text that only screen readers read out. */
export function spoken(text: string): HTMLElement {
  return el('span', { class: 'spoken' }, text);
}

/** A button. */
export function button(
  label: Child,
  onclick: (event: Event) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  return el('button', { type: 'button', onclick, ...attributes }, label);
}

/** A place whose content is made anew only when what it shows has changed, so that focus and selection stay. */
export class KeptPart<T> {
  readonly #place: Element;
  readonly #make: (shown: T) => readonly Child[];
  #last: string | undefined;

  constructor(place: Element, make: (shown: T) => readonly Child[]) {
    this.#place = place;
    this.#make = make;
  }

  /** Shows something that is JSON. */
  show(shown: T): void {
    const text = JSON.stringify(shown);
    if (text === this.#last) return;
    this.#last = text;
    this.#place.replaceChildren(...this.#make(shown).filter((child) => child !== undefined));
  }
}
