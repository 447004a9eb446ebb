// Ends of support from the product files of endoflife.date, old form and new. They change what the table in the code
// says, which stays the floor: releases that a file does not name keep their rows (MAT section 4).
import { type Document, jsonRecords } from '../input/documents.ts'
import { SourceRefused } from '../source-refused.ts'
import { isObject, type JsonObject, objectsOf, type RecordSink, type ReleasePart, textOf } from './source.ts'

type Product = {
  /** Release id of a cycle's name. */
  readonly release: (cycle: string) => string | null
  /** What costs nothing is standard (MAT-128): Debian's LTS is, Ubuntu's Pro and Red Hat's ELS are not. */
  readonly isExtensionFree: boolean
}

const numbered = (distro: string, form: RegExp) => (cycle: string) => (form.test(cycle) ? `${distro}:${cycle}` : null)
const whole = /^\d+$/
const dotted = /^\d+\.\d+$/

export const EOL_PRODUCTS: Readonly<Record<string, Product>> = {
  debian: { release: numbered('debian', whole), isExtensionFree: true },
  ubuntu: { release: numbered('ubuntu', dotted), isExtensionFree: false },
  'alpine-linux': { release: numbered('alpine', dotted), isExtensionFree: true },
  almalinux: { release: numbered('almalinux', whole), isExtensionFree: true },
  'rocky-linux': { release: numbered('rocky', whole), isExtensionFree: true },
  rhel: { release: numbered('rhel', whole), isExtensionFree: false },
  sles: {
    // Before 16 what follows the number is the service pack, and 0 is none.
    release: cycle => (/^\d+(\.\d+)?$/.test(cycle) ? `suse:${cycle.replace(/^(1[0-5])\.0$/, '$1')}` : null),
    isExtensionFree: false,
  },
  opensuse: { release: numbered('opensuse', dotted), isExtensionFree: true },
}

const productNamed = (name: string): Product | undefined =>
  Object.hasOwn(EOL_PRODUCTS, name) ? EOL_PRODUCTS[name] : undefined

const dayOf = (value: unknown): string => (/^\d{4}-\d\d-\d\d$/.test(textOf(value)) ? textOf(value) : '')
const later = (a: string, b: string): string => [a, b].toSorted()[1] ?? ''

function partOf(product: Product, cycle: JsonObject): ReleasePart | null {
  const name = textOf(cycle.cycle ?? cycle.name)
  const id = product.release(name)
  const regular = dayOf(cycle.eol ?? cycle.eolFrom)
  if (id === null || regular === '') return null
  const extended = dayOf(cycle.extendedSupport ?? cycle.eoesFrom)
  const standard = product.isExtensionFree ? later(regular, extended) : regular
  const codename = textOf(cycle.codename).toLowerCase().split(/[ /]/, 1)[0] ?? ''
  return {
    id,
    standard_until: standard,
    ...(codename === '' ? {} : { codename }),
    ...(product.isExtensionFree || extended === '' ? {} : { extended_until: extended }),
  }
}

/** The product is the name of the file, `debian.json`, or what the new form says of itself. */
function cyclesOf(
  document: Document,
  value: unknown,
): { readonly name: string; readonly cycles: readonly JsonObject[] } {
  const result = isObject(value) && isObject(value.result) ? value.result : null
  if (result !== null) return { name: textOf(result.name), cycles: objectsOf(result.releases) }
  return { name: document.name.replace(/\.json$/, ''), cycles: isObject(value) ? [value] : [] }
}

export async function parseEol(documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> {
  for await (const document of documents)
    for await (const value of jsonRecords(document)) {
      const { name, cycles } = cyclesOf(document, value)
      const product = productNamed(name) ?? productNamed(`${name}-linux`)
      if (product === undefined)
        throw new SourceRefused(`${document.name}: no product file of endoflife.date is named so`)
      if (cycles.length === 0) sink.reject()
      for (const cycle of cycles) {
        sink.record()
        const part = partOf(product, cycle)
        if (part !== null) sink.release(part)
      }
    }
}
