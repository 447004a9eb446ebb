// Alpine's secdb (MAT-083): one file a release and repository, with the version of each origin that fixed an id.
import { type Document, jsonRecords } from '../input/documents.ts'
import { SourceRefused } from '../source-refused.ts'
import { isObject, isPackageName, isRecordId, type JsonObject, type RecordSink, textOf } from './source.ts'

/** `v3.20` → `alpine:3.20`; null for what is no release. */
function releaseOf(distroVersion: string): string | null {
  if (distroVersion === 'edge') return 'alpine:edge'
  const version = /^v?(\d+\.\d+)$/.exec(distroVersion)?.[1]
  return version === undefined ? null : `alpine:${version}`
}

/** An advisory of GitHub may be of letters only; other ids have a digit. */
const ID = /^(GHSA(-[a-z0-9]{4}){3}|[A-Z][A-Z0-9]*-[\w.:-]*\d[\w.:-]*)$/i

/** Ids of one entry: `CVE-A CVE-B` names two, and words such as `(+` beside them name nothing. */
const idsOf = (entry: unknown): string[] =>
  textOf(entry)
    .split(/[\s,]+/)
    .filter(word => isRecordId(word) && ID.test(word))

function readPackage(release: string, pkg: JsonObject, sink: RecordSink): void {
  const { name } = pkg
  const isEmpty =
    pkg.secfixes === null || pkg.secfixes === undefined || (Array.isArray(pkg.secfixes) && pkg.secfixes.length === 0)
  if (!isPackageName(name) || (!isEmpty && !isObject(pkg.secfixes))) {
    sink.reject()
    return
  }
  sink.record()
  for (const [version, entries] of Object.entries(isObject(pkg.secfixes) ? pkg.secfixes : {})) {
    if (version === '0') continue
    for (const vuln of new Set((Array.isArray(entries) ? entries : []).flatMap(idsOf))) {
      sink.rule(
        { release, package: name, by: 'source' },
        {
          vuln,
          advisories: [],
          fixed: version,
          status: 'fixed',
          channel: 'standard',
          severity: '',
          minor: false,
          no_distro_fix: false,
        },
      )
      sink.vulnerability({ id: vuln })
    }
  }
}

export async function parseAlpine(documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> {
  for await (const document of documents)
    for await (const value of jsonRecords(document)) {
      const release = isObject(value) ? releaseOf(textOf(value.distroversion)) : null
      if (!isObject(value) || release === null || !Array.isArray(value.packages))
        throw new SourceRefused(`${document.name} is not a secdb file of Alpine: distroversion or packages is missing`)
      for (const entry of value.packages)
        if (isObject(entry) && isObject(entry.pkg)) readPackage(release, entry.pkg, sink)
        else sink.reject()
    }
}
