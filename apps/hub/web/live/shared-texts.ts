// Texts that many rows have, each kept once: the database's driver makes a new one for every row.

const TEXTS_MAX = 20_000

function shared<T>(known: Map<string, T>, key: string, make: () => T): T {
  const found = known.get(key)
  if (found !== undefined) return found
  const made = make()
  if (known.size >= TEXTS_MAX) known.clear()
  known.set(key, made)
  return made
}

export class SharedTexts {
  private readonly texts = new Map<string, string>()
  private readonly lists = new Map<string, readonly string[]>()

  text<T extends string | null>(text: T): T
  text(text: string | null): string | null {
    return text === null ? null : shared(this.texts, text, () => text)
  }

  list(list: readonly string[]): readonly string[] {
    return shared(this.lists, list.join('\0'), () => list.map(text => this.text(text)))
  }
}
