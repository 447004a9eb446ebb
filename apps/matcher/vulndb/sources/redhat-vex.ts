// Red Hat's VEX files, one a vulnerability (MAT-084, 085).
import type { Rule } from '../../../../core/matching/advisory.ts'
import { flavourOfVersion } from '../../../../core/matching/build-flavour.ts'
import { compareVersions, isValidVersion } from '../../../../core/matching/version.ts'
import { type Document, jsonRecords } from '../input/documents.ts'
import { compareText } from '../rules-text.ts'
import { cvssOf } from './cvss.ts'
import { type RedhatProduct, RedhatProducts } from './redhat-products.ts'
import {
  instantOf,
  isObject,
  isRecordId,
  type JsonObject,
  objectsOf,
  type RecordSink,
  referencesOf,
  textOf,
  textsOf,
  titleOf,
} from './source.ts'

type Product = RedhatProduct & { readonly id: string }

/** Builds of one fix have one key; special builds are fixes of their own (MAT-118). */
const keyOf = ({ release, package: name, module, version = '' }: RedhatProduct): string =>
  JSON.stringify([release, name, module, flavourOfVersion(version)])

/** What one vulnerability of a file says of its products. */
class VexVulnerability {
  private readonly impacts = new Map<string, string>()
  private readonly unplanned = new Set<string>()
  private readonly advisories = new Map<string, string[]>()
  private readonly generalImpact: string

  constructor(
    readonly record: JsonObject,
    private readonly products: RedhatProducts,
    documentImpact: string,
  ) {
    let general = documentImpact
    for (const threat of objectsOf(record.threats)) {
      if (threat.category !== 'impact') continue
      const ids = textsOf(threat.product_ids)
      if (ids.length === 0) general = textOf(threat.details)
      for (const id of ids) this.impacts.set(id, textOf(threat.details))
    }
    this.generalImpact = general
    for (const remediation of objectsOf(record.remediations)) {
      const ids = textsOf(remediation.product_ids)
      if (remediation.category === 'no_fix_planned') for (const id of ids) this.unplanned.add(id)
      const advisory = /\/(RH[SBE]A-\d{4}:\d+)$/.exec(textOf(remediation.url))?.[1]
      if (remediation.category === 'vendor_fix' && advisory !== undefined)
        for (const id of ids) this.advisories.set(id, [...(this.advisories.get(id) ?? []), advisory])
    }
  }

  /** The rules, each with its product. Rows are named by source package: binaries count where there is no other. */
  rules(vuln: string): { readonly product: Product; readonly rule: Rule }[] {
    const status = isObject(this.record.product_status) ? this.record.product_status : {}
    const fixed = this.fixedOf(textsOf(status.fixed))
    const of = (ids: unknown, fixStatus: (id: string) => Rule['status']) =>
      this.unfixed(textsOf(ids)).map(product => ({ product, rule: this.rule(vuln, product, fixStatus(product.id)) }))
    return [
      ...fixed.map(product => ({ product, rule: this.rule(vuln, product, 'fixed') })),
      ...of(status.known_affected, id => (this.unplanned.has(id) ? 'wont_fix' : 'no_fix')),
      ...of(status.under_investigation, () => 'undetermined'),
    ]
  }

  private found(ids: readonly string[]): Product[] {
    return ids.flatMap(id => {
      const product = this.products.find(id)
      return product === null ? [] : [{ ...product, id }]
    })
  }

  /** Binaries are left out where their release names its sources. */
  private unfixed(ids: readonly string[]): Product[] {
    const all = this.found(ids)
    const withSources = new Set(all.filter(({ kind }) => kind === 'source').map(({ release }) => release))
    return all.filter(({ kind, release }) => kind === 'source' || !withSources.has(release))
  }

  /** The lowest version of each package and module: several are builds of one fix (MAT-079). */
  private fixedOf(ids: readonly string[]): Product[] {
    const all = this.found(ids).filter(({ version }) => version !== undefined)
    const sources = all.filter(({ kind }) => kind !== 'binary')
    const hasSource = new Set(sources.map(({ id }) => id.split(':', 1)[0]))
    const binaries = all.filter(({ id, kind }) => kind === 'binary' && !hasSource.has(id.split(':', 1)[0]))
    const lowest = new Map<string, Product>()
    for (const product of [...sources, ...binaries]) {
      const before = lowest.get(keyOf(product))
      if (before === undefined || isLower(product.version ?? '', before.version ?? ''))
        lowest.set(keyOf(product), product)
    }
    return [...lowest.values()]
  }

  private rule(vuln: string, product: Product, status: Rule['status']): Rule {
    const severity = (this.impacts.get(product.id) ?? this.generalImpact).toLowerCase().slice(0, 32)
    const flavour = status === 'fixed' ? flavourOfVersion(product.version ?? '') : undefined
    return {
      vuln,
      advisories: status === 'fixed' ? (this.advisories.get(product.id) ?? []) : [],
      ...(status === 'fixed' && product.version !== undefined ? { fixed: product.version } : {}),
      status,
      channel: 'standard',
      severity,
      minor: severity === 'low',
      no_distro_fix: status === 'wont_fix',
      ...(product.module === undefined ? {} : { module: product.module }),
      ...(flavour === undefined ? {} : { flavour }),
    }
  }
}

const isLower = (a: string, b: string): boolean =>
  isValidVersion('rpm', a) && isValidVersion('rpm', b)
    ? (compareVersions('rpm', a, b) || compareText(a, b)) < 0
    : compareText(a, b) < 0

function addWords(vuln: string, record: JsonObject, tracking: JsonObject, sink: RecordSink): void {
  const scores = objectsOf(record.scores).flatMap(({ cvss_v3: cvss }) =>
    isObject(cvss) ? (cvssOf(cvss.vectorString, cvss.baseScore) ?? []) : [],
  )
  const score = scores.toSorted((a, b) => b.cvss_score - a.cvss_score || compareText(a.cvss_vector, b.cvss_vector))[0]
  const published = instantOf(record.release_date ?? tracking.initial_release_date)
  const modified = instantOf(tracking.current_release_date)
  const title = titleOf(record.title)
  sink.vulnerability({
    id: vuln,
    references: referencesOf(objectsOf(record.references).map(({ url }) => url)),
    ...(title === '' ? {} : { title }),
    ...(score === undefined ? {} : { ...score, score_source: 'redhat' }),
    ...(published === undefined ? {} : { published_ms: published }),
    ...(modified === undefined ? {} : { modified_ms: modified }),
  })
}

function readFile(file: unknown, sink: RecordSink): void {
  if (!isObject(file) || !isObject(file.document) || !Array.isArray(file.vulnerabilities)) {
    sink.reject()
    return
  }
  if (file.vulnerabilities.length > 0 && !isObject(file.product_tree)) {
    sink.reject()
    return
  }
  const products = new RedhatProducts(isObject(file.product_tree) ? file.product_tree : {})
  const tracking = isObject(file.document.tracking) ? file.document.tracking : {}
  const impact = isObject(file.document.aggregate_severity) ? textOf(file.document.aggregate_severity.text) : ''
  sink.record()
  for (const record of objectsOf(file.vulnerabilities)) {
    const vuln = textOf(record.cve)
    if (!isRecordId(vuln)) continue
    sink.replace(vuln)
    const rules = new VexVulnerability(record, products, impact).rules(vuln)
    for (const { product, rule } of rules)
      sink.rule(
        { release: product.release, package: product.package, by: product.kind === 'binary' ? 'binary' : 'source' },
        rule,
      )
    if (rules.length > 0) addWords(vuln, record, tracking, sink)
  }
}

export async function parseRedhat(documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> {
  for await (const document of documents) {
    // Lists beside the files in a folder of them.
    if (/^(index|changes|deletions|releases)\.(json|csv)$/.test(document.name)) continue
    for await (const file of jsonRecords(document)) readFile(file, sink)
  }
}
