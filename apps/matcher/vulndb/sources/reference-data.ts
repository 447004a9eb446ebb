// What is known of vulnerabilities beside the distributions (MAT section 4): scores of the NVD (MAT-086), the CISA
// catalogue of known exploited ones, the daily EPSS file. None of it decides whether a version is affected.
import { type Document, jsonMembers, linesOf } from '../input/documents.ts'
import { SourceRefused } from '../source-refused.ts'
import { type Cvss, cvssOf } from './cvss.ts'
import { instantOf, isCve, isObject, objectsOf, type RecordSink, textOf } from './source.ts'

/** The NVD's own assessment before that of others, the widest used version of CVSS first. */
function nvdScore(metrics: unknown): Cvss | null {
  if (!isObject(metrics)) return null
  const entries = [metrics.cvssMetricV31, metrics.cvssMetricV30, metrics.cvssMetricV40].flatMap(objectsOf)
  const primary = entries.filter(({ type }) => type === 'Primary')
  for (const { cvssData } of [...primary, ...entries]) {
    const cvss = isObject(cvssData) ? cvssOf(cvssData.vectorString, cvssData.baseScore) : null
    if (cvss !== null) return cvss
  }
  return null
}

function readNvdRecord(entry: unknown, sink: RecordSink): void {
  const cve = isObject(entry) ? entry.cve : null
  if (!isObject(cve) || !isCve(textOf(cve.id))) {
    sink.reject()
    return
  }
  sink.record()
  if (cve.vulnStatus === 'Rejected') return
  const cvss = nvdScore(cve.metrics)
  const published = instantOf(cve.published)
  const modified = instantOf(cve.lastModified)
  sink.vulnerability({
    id: textOf(cve.id),
    ...(cvss === null ? {} : { ...cvss, score_source: 'nvd' }),
    ...(published === undefined ? {} : { published_ms: published }),
    ...(modified === undefined ? {} : { modified_ms: modified }),
  })
}

async function eachVulnerability(document: Document, what: string, read: (entry: unknown) => void): Promise<void> {
  let hasList = false
  for await (const { keys, value } of jsonMembers(document, 2)) {
    if (keys[0] !== 'vulnerabilities') continue
    hasList = true
    read(value)
  }
  if (!hasList) throw new SourceRefused(`${document.name} is not ${what}: it has no vulnerabilities`)
}

export async function parseScores(documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> {
  for await (const document of documents)
    await eachVulnerability(document, 'a year file of NVD 2.0', entry => readNvdRecord(entry, sink))
}

function readKevRecord(entry: unknown, sink: RecordSink): void {
  if (!isObject(entry) || !isCve(textOf(entry.cveID))) {
    sink.reject()
    return
  }
  sink.record()
  const due = textOf(entry.dueDate)
  sink.vulnerability({
    id: textOf(entry.cveID),
    kev: true,
    kev_due_date: /^\d{4}-\d\d-\d\d$/.test(due) ? due : '',
  })
}

export async function parseKev(documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> {
  for await (const document of documents)
    await eachVulnerability(document, 'the CISA catalogue', entry => readKevRecord(entry, sink))
}

/** `cve,epss,percentile` below a line of comment. */
export async function parseEpss(documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> {
  for await (const document of documents) {
    let header: string[] | null = null
    for await (const raw of linesOf(document.chunks)) {
      const line = raw.trim()
      if (line === '' || line.startsWith('#')) continue
      const fields = line.split(',')
      if (header === null) {
        header = fields
        if (!header.includes('cve') || !header.includes('epss'))
          throw new SourceRefused(`${document.name} is not an EPSS file: its header lacks cve or epss`)
        continue
      }
      readEpssLine(fields[header.indexOf('cve')], fields[header.indexOf('epss')], sink)
    }
  }
}

function readEpssLine(id: string | undefined, probability: string | undefined, sink: RecordSink): void {
  const epss = probability === undefined || probability === '' ? Number.NaN : Number(probability)
  if (id === undefined || !isCve(id) || !(epss >= 0 && epss <= 1)) {
    sink.reject()
    return
  }
  sink.record()
  sink.vulnerability({ id, epss })
}
