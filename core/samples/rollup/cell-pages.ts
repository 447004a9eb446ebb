// Memory in pages for the packed cells of many servers. What is packed anew lies in another place: a page of which
// nothing is left is used again.

/** Larger than the packed cells of any server. */
const PAGE_BYTES = 2 ** 20

export type CellPage = {
  readonly bytes: Uint8Array
  /** Bytes that cells still lie in. */
  live: number
}

/** Pages that no cells lie in. */
export class SparePages {
  private readonly pages: CellPage[] = []

  take(): CellPage {
    return this.pages.pop() ?? { bytes: new Uint8Array(PAGE_BYTES), live: 0 }
  }

  give(page: CellPage): void {
    page.live = 0
    this.pages.push(page)
  }

  /** Keeps no more than so many. */
  trim(count: number): void {
    this.pages.length = Math.min(this.pages.length, count)
  }
}

/** The pages of the cells of one start. */
export class CellPages {
  private pages: CellPage[] = []
  /** Bytes in use of the last page. */
  private used = 0
  private live = 0

  constructor(private readonly spare: SparePages) {}

  get count(): number {
    return this.pages.length
  }

  /** Whether most of their memory has nothing in it. */
  get isSparse(): boolean {
    return this.pages.length > 2 && this.pages.length * PAGE_BYTES > 2 * this.live + 2 * PAGE_BYTES
  }

  /** Lays down the bytes [from, from + length) and returns where they lie. */
  place(bytes: Uint8Array, from: number, length: number): { readonly page: CellPage; readonly at: number } {
    let page = this.pages.at(-1)
    if (!page || this.used + length > PAGE_BYTES) {
      page = this.spare.take()
      this.pages.push(page)
      this.used = 0
    }
    const at = this.used
    page.bytes.set(bytes.subarray(from, from + length), at)
    page.live += length
    this.live += length
    this.used += length
    return { page, at }
  }

  /** So many bytes of a page are needed no more. */
  leave(page: CellPage, length: number): void {
    page.live -= length
    this.live -= length
    if (page.live > 0) return
    const at = this.pages.indexOf(page)
    if (at === this.pages.length - 1) {
      // The open page: its memory is used from the start again.
      this.used = 0
      return
    }
    this.pages.splice(at, 1)
    this.spare.give(page)
  }

  /** Gives all pages back. */
  release(): void {
    for (const page of this.pages) this.spare.give(page)
    this.pages = []
    this.used = 0
    this.live = 0
  }
}
