// Elements without HTML text: whatever a server is called, it is only ever text.

type Child = Node | string | null

type Attributes = Readonly<Record<string, string | boolean | null>>

/** Makes an element; an attribute of true is there without a value, of false or null is not there. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value)
  for (const child of children) if (child !== null) element.append(child)
  return element
}

/** Changes the page only where it differs, so that a live page does not disturb whoever reads it. */
export function setAttribute(element: Element, name: string, value: string | boolean | null): void {
  if (value === false || value === null) element.removeAttribute(name)
  else if (element.getAttribute(name) !== String(value === true ? '' : value))
    element.setAttribute(name, value === true ? '' : value)
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

export const show = (element: HTMLElement, isShown: boolean): void => {
  if (element.hidden === isShown) element.hidden = !isShown
}

type View<T> = { readonly root: HTMLElement; update(item: T): void; remove?(): void }

/** Keeps one view an item, by id: made when it comes, changed in place while it stays, removed when it goes. */
export class KeyedList<T extends { readonly id: string }> {
  private readonly views = new Map<string, View<T>>()

  constructor(
    private readonly parent: HTMLElement,
    private readonly make: (item: T) => View<T>,
  ) {}

  update(items: readonly T[]): void {
    const focused = document.activeElement
    const wanted = new Set(items.map(item => item.id))
    for (const [id, view] of this.views) {
      if (wanted.has(id)) continue
      view.remove?.()
      view.root.remove()
      this.views.delete(id)
    }
    items.forEach((item, index) => {
      const known = this.views.get(item.id)
      const view = known ?? this.make(item)
      if (!known) this.views.set(item.id, view)
      const at = this.parent.children[index]
      if (at !== view.root) this.parent.insertBefore(view.root, at ?? null)
      view.update(item)
    })
    // A view that was moved has lost the focus that was in it.
    if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) focused.focus()
  }
}
