// OSV records of Ubuntu, AlmaLinux, Rocky, SUSE, openSUSE and Debian (MAT-076 to 079, 082).
import { type Document, jsonRecords } from '../input/documents.ts'
import { sortedUnique } from '../rules-text.ts'
import { type Cvss, cvssOf } from './cvss.ts'
import type { OsvDistro } from './ecosystems.ts'
import { osvRules } from './osv-rules.ts'
import {
  instantOf,
  isCve,
  isObject,
  isRecordId,
  type JsonObject,
  objectsOf,
  type RecordSink,
  referencesOf,
  textOf,
  textsOf,
  titleOf,
  type VulnerabilityPart,
} from './source.ts'

/** Ids under which OSV republishes a CVE for a distribution: they name no advisory. */
const isRepublishedCve = (id: string): boolean => /^(DEBIAN|UBUNTU|ALPINE)-CVE-/.test(id) || isCve(id)

/** Bug fixes and enhancements of AlmaLinux and Rocky: without a CVE they are no vulnerability. */
const isNoSecurity = (id: string): boolean => /^(ALBA|ALEA|RLBA|RLEA)-/.test(id)

/** The vulnerabilities that a record is about (MAT-077). */
function vulnerabilitiesOf(record: JsonObject): string[] {
  const id = textOf(record.id)
  if (isCve(id)) return [id]
  for (const list of [record.upstream, record.aliases, record.related]) {
    const cves = textsOf(list).filter(isCve)
    if (cves.length > 0) return sortedUnique(cves)
  }
  return isNoSecurity(id) ? [] : [id]
}

const WORDS = ['critical', 'important', 'moderate', 'low']

/** The distribution's word: Ubuntu's priority (MAT-082); elsewhere a field, or the word that titles begin with. */
function severityWord(record: JsonObject, affected: JsonObject, distro: OsvDistro): string {
  if (distro === 'ubuntu') {
    const entry =
      objectsOf(record.severity).find(({ type }) => type === 'Ubuntu') ??
      objectsOf(affected.severity).find(({ type }) => type === 'Ubuntu')
    const specific = isObject(affected.ecosystem_specific) ? affected.ecosystem_specific.ubuntu_priority : undefined
    const word = textOf(entry?.score ?? specific).toLowerCase()
    return word === 'untriaged' ? '' : word
  }
  const fields = [affected.ecosystem_specific, affected.database_specific, record.database_specific]
  const field = fields
    .map(each => (isObject(each) ? textOf(each.severity).toLowerCase() : ''))
    .find(word => word !== '')
  if (field !== undefined) return field
  const word = /^([a-z]+):\s/i.exec(textOf(record.summary))?.[1]?.toLowerCase() ?? ''
  return WORDS.includes(word) ? word : ''
}

function severityOf(record: JsonObject, affected: JsonObject, distro: OsvDistro): { severity: string; minor: boolean } {
  const severity = severityWord(record, affected, distro).slice(0, 32)
  return { severity, minor: severity === 'low' || severity === 'negligible' }
}

/** A score of the record is that of its vulnerability when it has one only. */
function scoreOf(record: JsonObject, vulns: readonly string[]): Cvss | null {
  if (vulns.length !== 1) return null
  for (const type of ['CVSS_V3', 'CVSS_V4'])
    for (const entry of objectsOf(record.severity)) {
      const cvss = entry.type === type ? cvssOf(entry.score) : null
      if (cvss !== null) return cvss
    }
  return null
}

function partsOf(record: JsonObject, vulns: readonly string[], distro: OsvDistro): VulnerabilityPart[] {
  const cvss = scoreOf(record, vulns)
  const published = instantOf(record.published)
  const modified = instantOf(record.modified)
  const title = titleOf(record.summary ?? record.details)
  const isOwn = vulns.length === 1
  return vulns.map(id => ({
    id,
    aliases: isOwn ? sortedUnique(textsOf(record.aliases).filter(alias => alias !== id && isRecordId(alias))) : [],
    references: referencesOf(objectsOf(record.references).map(({ url }) => url)),
    ...(title === '' ? {} : { title }),
    ...(cvss === null ? {} : { ...cvss, score_source: distro }),
    ...(published === undefined ? {} : { published_ms: published }),
    ...(modified === undefined ? {} : { modified_ms: modified }),
  }))
}

function readRecord(record: unknown, distro: OsvDistro, sink: RecordSink): void {
  if (!isObject(record) || !isRecordId(record.id) || !Array.isArray(record.affected ?? [])) {
    sink.reject()
    return
  }
  sink.record()
  if (textOf(record.withdrawn) !== '') return
  const vulns = vulnerabilitiesOf(record).filter(isRecordId)
  const { rules, isKnown } = osvRules(record, distro, affected => severityOf(record, affected, distro))
  if (!isKnown || vulns.length === 0) return
  const advisories = isRepublishedCve(record.id) ? [] : [record.id]
  for (const vuln of vulns)
    for (const { key, rule } of rules) {
      if (distro === 'debian') sink.advisories(key, vuln, advisories)
      else sink.rule(key, { ...rule, vuln, advisories })
    }
  if (distro !== 'debian') for (const part of partsOf(record, vulns, distro)) sink.vulnerability(part)
}

/** Of Debian's OSV records only the ids of advisories are taken: its rules come from the tracker (MAT-080). */
export const parseOsv =
  (distro: OsvDistro) =>
  async (documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> => {
    for await (const document of documents)
      for await (const record of jsonRecords(document)) readRecord(record, distro, sink)
  }
