// What is wrong with the record of an agent that the hub sends, and what odd of it is passed over, so that it does not
// lock the agent out: in the feed, in a look-up, in a renewal and in the admin API (document 1 "Registry record";
// document 3 "AgentRecord"; decisions G-34, G-38).
import { agentStates } from '../../../../core/lifecycle/agent.ts'
import { isUuid } from '../../../../core/series/uuid.ts'
import type { ScanInvitation } from '../../../../core/wire/agent-config.ts'
import { type AgentRecord, isJsonObject } from './agent-record.ts'

type ServerStatus = AgentRecord['serverStatus']

const HASH = /^[0-9a-f]{64}$/

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const wholeOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0

/** An RFC 3339 instant in ms; 0 for null or nothing; NaN for anything else. */
function instantOf(value: unknown): number {
  if (value === null || value === undefined || value === '') return 0
  if (typeof value !== 'string' || !/^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}/.test(value)) return Number.NaN
  return Date.parse(value)
}

const MATCHER_URL_CHARS_MAX = 2048
const ENROL_CODE = /^[!-~]{1,256}$/

/** An invitation to scan; anything that is none counts as absent, so that it does not lock an agent out. */
export function invitationOf(json: unknown): ScanInvitation | undefined {
  if (!isJsonObject(json)) return undefined
  const { matcher_url: matcherUrl, enrol_code: enrolCode } = json
  if (typeof matcherUrl !== 'string' || matcherUrl.length > MATCHER_URL_CHARS_MAX) return undefined
  if (URL.parse(matcherUrl)?.protocol !== 'https:') return undefined
  return typeof enrolCode === 'string' && ENROL_CODE.test(enrolCode) ? { matcherUrl, enrolCode } : undefined
}

/** Why JSON is no agent record: the field, and what was expected. */
type RecordFault = { readonly field: string; readonly expected: string }

/** A server status without meaning for the collector counts as empty. */
const statusOf = (value: unknown): ServerStatus => (value === 'maintenance' || value === 'decommissioned' ? value : '')

/**
 * Reads a record. `agentId` is given where it stands in the path; `held` gives the optional fields that a renewal's
 * answer leaves out (elsewhere an absent field counts as empty).
 */
export function parseAgentRecord(json: unknown, agentId?: string, held?: AgentRecord): AgentRecord | RecordFault {
  if (!isJsonObject(json)) return { field: 'body', expected: 'an object' }
  const id = agentId ?? json.agent_id
  if (typeof id !== 'string' || !isUuid(id)) return { field: 'agent_id', expected: 'a UUID' }
  const { company_id: companyId, token_hash: tokenHash } = json
  const serverId = json.server_id === null ? '' : json.server_id
  if (typeof companyId !== 'string' || !isUuid(companyId)) return { field: 'company_id', expected: 'a UUID' }
  if (typeof serverId !== 'string' || (serverId !== '' && !isUuid(serverId)))
    return { field: 'server_id', expected: 'a UUID' }
  const state = agentStates.find(known => known === json.state)
  if (!state) return { field: 'state', expected: agentStates.join(', ') }
  if (typeof tokenHash !== 'string' || !HASH.test(tokenHash))
    return { field: 'token_hash', expected: '64 lowercase hex characters' }
  const prevTokenHash = json.prev_token_hash ?? ''
  if (typeof prevTokenHash !== 'string' || (prevTokenHash !== '' && !HASH.test(prevTokenHash)))
    return { field: 'prev_token_hash', expected: '64 lowercase hex characters, or null' }
  const prevTokenExpiresAtMs = instantOf(json.prev_token_expires_at)
  if (Number.isNaN(prevTokenExpiresAtMs))
    return { field: 'prev_token_expires_at', expected: 'an RFC 3339 instant, or null' }
  const { version } = json
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 0)
    return { field: 'version', expected: 'a whole number' }
  const seconds = json.interval_seconds ?? held?.intervalSeconds ?? 0
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds) || seconds < 0)
    return { field: 'interval_seconds', expected: 'a whole number' }
  const enrolledAtMs = instantOf(json.enrolled_at)
  const scan = json.scan === undefined ? held?.scan : invitationOf(json.scan)
  return {
    agentId: id,
    companyId,
    serverId,
    state,
    tokenHash,
    prevTokenHash,
    prevTokenExpiresAtMs: prevTokenHash === '' ? 0 : prevTokenExpiresAtMs,
    version,
    syncVersion: wholeOf(json.sync_version),
    serverStatus: json.server_status === undefined ? (held?.serverStatus ?? '') : statusOf(json.server_status),
    subnetId: json.subnet_id === undefined ? (held?.subnetId ?? '') : textOf(json.subnet_id),
    datacenter: json.datacenter === undefined ? (held?.datacenter ?? '') : textOf(json.datacenter),
    hostname: json.hostname === undefined ? (held?.hostname ?? '') : textOf(json.hostname),
    intervalSeconds: seconds,
    enrolledAtMs: Number.isNaN(enrolledAtMs) || enrolledAtMs === 0 ? (held?.enrolledAtMs ?? 0) : enrolledAtMs,
    ...(scan ? { scan } : {}),
  }
}

/**
 * The fault of the optional fields of a pushed record. In the feed such a fault is ignored, so that it does not lock an
 * agent out.
 */
export function optionalFieldFault(json: unknown): RecordFault | null {
  if (!isJsonObject(json)) return null
  const status = json.server_status ?? ''
  if (status !== '' && statusOf(status) === '')
    return { field: 'server_status', expected: 'maintenance, decommissioned or empty' }
  for (const field of ['subnet_id', 'datacenter', 'hostname'])
    if (typeof (json[field] ?? '') !== 'string') return { field, expected: 'text' }
  return null
}

export const isRecordFault = (value: AgentRecord | RecordFault): value is RecordFault => 'field' in value
