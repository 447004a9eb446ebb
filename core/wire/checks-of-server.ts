// Which checks a server runs (document 1 "Check sync envelope"; decision G-52): those of the feed that are valid,
// enabled and cover it, and of more than an agent gets the first ones by their ids.
import type { RawCheck } from '../agent/check.ts'
import { isObject } from '../json-object.ts'
import { limits } from '../limits.ts'

const checkTypes = ['service', 'port', 'tcp', 'http', 'cert'] as const
type CheckType = (typeof checkTypes)[number]

/** A check as the agent is given it: only the fields of its type are set. */
export type AgentCheck = RawCheck & { readonly type: CheckType }

/** A raw record of the checks feed. */
export type CheckRecord = { readonly id: string; readonly sync_version: number } & Readonly<Record<string, unknown>>

type Scope = { readonly isAll: boolean; readonly serverIds: readonly string[] }

const SERVICE_NAME = /^[A-Za-z0-9@._-]{1,128}$/
const HOST_PORT = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/

const isPort = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535

const isHostPort = (value: unknown): value is string => {
  const found = typeof value === 'string' && value.length <= 300 ? HOST_PORT.exec(value) : null
  return found !== null && isPort(Number(found[1]))
}

/** True for http and https addresses without credentials. */
function isCheckUrl(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > 2048 || !URL.canParse(value)) return false
  const url = new URL(value)
  return (url.protocol === 'http:' || url.protocol === 'https:') && url.username === '' && url.password === ''
}

type Target = Pick<AgentCheck, 'name' | 'target' | 'port' | 'proto' | 'url' | 'expectStatus'>
const noTarget: Target = { name: '', target: '', port: 0, proto: '', url: '', expectStatus: 0 }

/** The target of a check by its type; null outside its domain. */
function checkTarget(type: CheckType, target: Readonly<Record<string, unknown>>): Target | null {
  switch (type) {
    case 'service':
      return typeof target.name === 'string' && SERVICE_NAME.test(target.name)
        ? { ...noTarget, name: target.name }
        : null
    case 'port':
      return isPort(target.port) && (target.proto === 'tcp' || target.proto === 'udp')
        ? { ...noTarget, port: target.port, proto: target.proto }
        : null
    case 'tcp':
    case 'cert':
      return isHostPort(target.target) ? { ...noTarget, target: target.target } : null
    case 'http': {
      const status = target.expect_status ?? 200
      const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 100 && status <= 599
      return isCheckUrl(target.url) && isStatus ? { ...noTarget, url: target.url, expectStatus: status } : null
    }
  }
}

/** Compiles a record of the feed; null when a field of it is outside its domain. */
export function compileCheck(record: CheckRecord): AgentCheck | null {
  const type = checkTypes.find(known => known === record.type)
  if (!type || !isObject(record.target)) return null
  const target = checkTarget(type, record.target)
  const timeout = record.timeout_seconds ?? limits.checkTimeoutSecondsDefault
  const isTimeout =
    typeof timeout === 'number' && Number.isInteger(timeout) && timeout >= 1 && timeout <= limits.checkTimeoutSecondsMax
  return target && isTimeout ? { id: record.id, type, ...target, timeoutSeconds: timeout } : null
}

const idsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((id): id is string => typeof id === 'string') : []

function scopeOf(record: CheckRecord): Scope {
  const scope = isObject(record.scope) ? record.scope : {}
  if (scope.all === true) return { isAll: true, serverIds: [] }
  const serverIds = new Set([
    ...idsOf(scope.server_ids),
    ...idsOf(scope.resolved_server_ids),
    ...idsOf(record.resolved_server_ids),
  ])
  return { isAll: false, serverIds: [...serverIds] }
}

type CompanyChecks = { readonly all: AgentCheck[]; readonly byServer: Map<string, AgentCheck[]> }

/** Counts of a set, for the status call. */
export type CheckCounts = {
  readonly loaded: number
  readonly invalid: number
  readonly disabled: number
}

/** A server as the registry names it; several agents of one server name it more than once. */
export type Server = { readonly companyId: string; readonly serverId: string }

/** How a set of checks covers the known servers, for the status call. */
export type CheckCoverage = {
  /** Servers to which at least one check applies. */
  readonly servers: number
  /** Servers to which more than 50 checks apply. */
  readonly truncated: number
}

const noChecks: readonly AgentCheck[] = []

/** The checks in force, by company and server. Immutable: another pull makes another set. */
export class CheckSet {
  private readonly companies = new Map<string, CompanyChecks>()
  readonly counts: CheckCounts
  /** Ids of malformed records, which the status call reports to operators. */
  readonly invalidIds: readonly string[]

  constructor(records: Iterable<CheckRecord> = []) {
    let loaded = 0
    let disabled = 0
    const invalidIds: string[] = []
    for (const record of records) {
      if (record.deleted === true) continue
      if (record.enabled === false) {
        disabled++
        continue
      }
      const check = compileCheck(record)
      if (!check || typeof record.company_id !== 'string') {
        invalidIds.push(record.id)
        continue
      }
      loaded++
      this.add(record.company_id, scopeOf(record), check)
    }
    this.counts = { loaded, invalid: invalidIds.length, disabled }
    this.invalidIds = invalidIds
  }

  private add(companyId: string, scope: Scope, check: AgentCheck): void {
    let company = this.companies.get(companyId)
    if (!company) {
      company = { all: [], byServer: new Map() }
      this.companies.set(companyId, company)
    }
    if (scope.isAll) company.all.push(check)
    for (const serverId of scope.serverIds) {
      const checks = company.byServer.get(serverId)
      if (checks) checks.push(check)
      else company.byServer.set(serverId, [check])
    }
  }

  private allOf(companyId: string, serverId: string): readonly AgentCheck[] {
    const company = this.companies.get(companyId)
    if (!company) return noChecks
    const own = company.byServer.get(serverId)
    return own ? [...company.all, ...own] : company.all
  }

  /** How many of these servers have checks, and how many have more than the 50 that an agent gets. */
  coverage(servers: Iterable<Server>): CheckCoverage {
    const seen = new Set<string>()
    let truncated = 0
    if (this.companies.size > 0)
      for (const { companyId, serverId } of servers) {
        const company = this.companies.get(companyId)
        if (!company || seen.has(serverId)) continue
        const count = company.all.length + (company.byServer.get(serverId)?.length ?? 0)
        if (count === 0) continue
        seen.add(serverId)
        if (count > limits.checksPerServerMax) truncated++
      }
    return { servers: seen.size, truncated }
  }

  /** The checks of a server: the first 50 by ascending id. */
  checksOf(companyId: string, serverId: string): readonly AgentCheck[] {
    const checks = this.allOf(companyId, serverId)
    if (checks.length === 0) return noChecks
    return [...checks].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)).slice(0, limits.checksPerServerMax)
  }
}
