// What the records of a zone may be beside one another (RFC 1034 3.6.2, RFC 2181 10, RFC 7208 3.2, RFC 2782).
import { fullName, isReverseZone, isWithin, relativeName } from './domain-name.ts'
import type { RecordType, RecordValue } from './record-value.ts'

export type ZoneRecord = RecordValue & { readonly name: string; readonly type: RecordType }

/** The field that a fault belongs to, and what is wrong. */
export type ZoneFault = {
  readonly field: 'name' | 'value'
  readonly reason:
    | 'cname_at_apex'
    | 'cname_beside'
    | 'cname_twice'
    | 'cname_itself'
    | 'target_is_cname'
    | 'null_mx_beside'
    | 'spf_twice'
    | 'service_name'
    | 'not_reverse'
    | 'delegation_beside'
    | 'record_twice'
}

const fault = (field: ZoneFault['field'], reason: ZoneFault['reason']): ZoneFault => ({ field, reason })
const SERVICE_NAME = /^_[^.]+\._[^.]+/
const isSpf = ({ type, value }: ZoneRecord): boolean => type === 'TXT' && /^v=spf1(\s|$)/i.test(value)
const GLUE: readonly RecordType[] = ['A', 'AAAA', 'NS']

/** The relative name that a record leads to; null when that is outside the zone. */
export function targetInZone({ target }: RecordValue, zone: string): string | null {
  const name = target?.replace(/\.$/, '') ?? ''
  return name !== '' && isWithin(name, zone) ? relativeName(name, zone) : null
}

/** What is wrong with a record by itself. */
function faultAlone(record: ZoneRecord, zone: string): ZoneFault | null {
  const { name, type, target } = record
  if (type === 'CNAME' && name === '@') return fault('name', 'cname_at_apex')
  if (type === 'CNAME' && target === `${fullName(name, zone)}.`) return fault('value', 'cname_itself')
  if (type === 'SRV' && !SERVICE_NAME.test(name)) return fault('name', 'service_name')
  if (type === 'PTR' && !isReverseZone(zone)) return fault('name', 'not_reverse')
  return null
}

function faultBesideOne(record: ZoneRecord, other: ZoneRecord): ZoneFault | null {
  if (other.type === record.type && other.value === record.value) return fault('value', 'record_twice')
  if (record.type === 'CNAME' && other.type === 'CNAME') return fault('value', 'cname_twice')
  if (record.type === 'CNAME' || other.type === 'CNAME') return fault('name', 'cname_beside')
  const areMail = record.type === 'MX' && other.type === 'MX'
  if (areMail && (record.target === '.' || other.target === '.')) return fault('value', 'null_mx_beside')
  if (isSpf(record) && isSpf(other)) return fault('value', 'spf_twice')
  const isDelegation = record.name !== '@' && (record.type === 'NS' || other.type === 'NS')
  if (isDelegation && !(GLUE.includes(record.type) && GLUE.includes(other.type)))
    return fault('value', 'delegation_beside')
  return null
}

/**
 * The first fault of a record in a zone whose other records `at` gives by relative name (of the record itself and of
 * where it leads); null when it may stand there.
 */
export function faultInZone(
  record: ZoneRecord,
  zone: string,
  at: (name: string) => readonly ZoneRecord[],
): ZoneFault | null {
  const alone = faultAlone(record, zone)
  if (alone) return alone
  for (const other of at(record.name)) {
    const found = faultBesideOne(record, other)
    if (found) return found
  }
  const leadsTo = record.type === 'MX' || record.type === 'SRV' ? targetInZone(record, zone) : null
  const isAlias = leadsTo !== null && at(leadsTo).some(({ type }) => type === 'CNAME')
  return isAlias ? fault('value', 'target_is_cname') : null
}
