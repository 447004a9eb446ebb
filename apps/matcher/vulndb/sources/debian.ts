// The JSON of Debian's security tracker (MAT-080, 081): package → vulnerability → release. The trackers of Debian and
// of its paid extension (ELTS) have one form.
import type { FixChannel, Rule } from '../../../../core/matching/advisory.ts'
import { type Document, jsonMembers } from '../input/documents.ts'
import { SourceRefused } from '../source-refused.ts'
import { isObject, isPackageName, isRecordId, type JsonObject, type RecordSink, textOf, titleOf } from './source.ts'

/** Release ids by code name. Testing and unstable have none: their rows would be matched by nobody (MAT-110). */
type Codenames = ReadonlyMap<string, string>

const STATUSES = ['resolved', 'open', 'undetermined'] as const

/** The rule of one release; null where there is nothing to match; `faulty` for what the tracker cannot say. */
function ruleOf(vuln: string, entry: JsonObject, channel: FixChannel): Rule | null | 'faulty' {
  const status = STATUSES.find(known => known === entry.status)
  if (status === undefined) return 'faulty'
  const urgency = textOf(entry.urgency).replaceAll('*', '').trim().toLowerCase()
  const isIgnored = status === 'open' && (entry.nodsa_reason === 'ignored' || urgency === 'end-of-life')
  const base = {
    vuln,
    advisories: [],
    channel,
    severity: urgency === 'not yet assigned' || urgency === 'end-of-life' ? '' : urgency,
    minor: urgency === 'unimportant' || urgency === 'low' || entry.nodsa !== undefined,
    no_distro_fix: isIgnored,
  }
  switch (status) {
    case 'resolved': {
      const fixed = entry.fixed_version
      if (typeof fixed !== 'string') return 'faulty'
      return fixed === '0' ? null : { ...base, fixed, status: 'fixed' }
    }
    case 'open':
      return { ...base, status: isIgnored ? 'wont_fix' : 'no_fix' }
    case 'undetermined':
      return { ...base, status: 'undetermined' }
  }
}

function readVulnerability(
  name: string,
  vuln: string,
  record: unknown,
  context: { readonly codenames: Codenames; readonly channel: FixChannel; readonly sink: RecordSink },
): void {
  const { codenames, channel, sink } = context
  if (!isRecordId(vuln) || !isObject(record) || !isObject(record.releases)) {
    sink.reject()
    return
  }
  const rules = Object.entries(record.releases).flatMap(([codename, entry]) => {
    const release = codenames.get(codename)
    if (release === undefined) return []
    return [{ release, rule: isObject(entry) ? ruleOf(vuln, entry, channel) : ('faulty' as const) }]
  })
  if (rules.some(({ rule }) => rule === 'faulty')) {
    sink.reject()
    return
  }
  sink.record()
  let hasRules = false
  for (const { release, rule } of rules) {
    if (rule === null || rule === 'faulty') continue
    hasRules = true
    sink.rule({ release, package: name, by: 'source' }, rule)
  }
  const title = titleOf(record.description)
  if (hasRules) sink.vulnerability(title === '' ? { id: vuln } : { id: vuln, title })
}

export const parseDebian =
  (codenames: Codenames, channel: FixChannel) =>
  async (documents: AsyncIterable<Document>, sink: RecordSink): Promise<void> => {
    for await (const document of documents)
      for await (const { keys, value } of jsonMembers(document, 1)) {
        const name = keys[0]
        if (name === undefined) throw new SourceRefused('it is not the JSON of a Debian security tracker')
        if (!isPackageName(name) || !isObject(value)) sink.reject()
        else
          for (const [vuln, record] of Object.entries(value))
            readVulnerability(name, vuln, record, { codenames, channel, sink })
      }
  }
