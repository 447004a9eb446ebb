// The permission keys and what a holder of them may do (decisions G-03, G-67).

/** Granted only by commands of the hub or a super administrator; the wildcard does not include them. */
const servicePermissions = ['monitoring.collector', 'security.matcher'] as const

export const assignablePermissions = [
  'monitoring.view',
  'monitoring.manage',
  'monitoring.delete',
  'servers.view',
  'servers.manage',
  'servers.delete',
  'iac.submit',
  'iac.view',
  'iac.apply',
  'approvals.view',
  'approvals.decide',
  'approvals.manage',
  'api-tokens.manage',
  'security.view',
  'security.manage',
  'security.export',
  'security.secrets.view',
  'security.pii.view',
  'security.content.manage',
  'identity.view',
  'identity.manage',
  'notifications.view',
  'notifications.manage',
  'webhooks.view',
  'webhooks.manage',
  'audit.view',
  'connections.view',
  'connections.manage',
  'load-balancers.view',
  'load-balancers.manage',
  'proxies.view',
  'proxies.manage',
  'certificates.view',
  'certificates.manage',
  'dns.view',
  'dns.manage',
  'network.view',
  'network.manage',
  'options.view',
  'options.manage',
  'queues.view',
  'queues.manage',
  'system.settings.view',
  'system.settings.manage',
  'system.commands.run',
  'export.run',
  'files.view',
  'files.manage',
] as const

export const wildcard = '*'

const assignable = new Set<string>(assignablePermissions)
const service = new Set<string>(servicePermissions)

export const isAssignable = (permission: string): boolean => permission === wildcard || assignable.has(permission)
export const isServicePermission = (permission: string): boolean => service.has(permission)

/** The keys that a list grants: the wildcard stands for every assignable one, and for no service permission. */
export function expandPermissions(granted: readonly string[]): Set<string> {
  const keys = new Set<string>()
  for (const key of granted) {
    if (key === wildcard) for (const each of assignablePermissions) keys.add(each)
    else keys.add(key)
  }
  return keys
}

/** The entries of a list that each grant `permission`. */
export const grantersOf = (permission: string): readonly string[] =>
  assignable.has(permission) ? [permission, wildcard] : [permission]

/** Lists that each restrict a token; null restricts nothing. */
export type Limits = readonly (readonly string[] | null)[]

/** The permissions of a token: never more than its user's, restricted by each of its limits. */
export function effectivePermissions(ofUser: readonly string[], limits: Limits): Set<string> {
  let keys = expandPermissions(ofUser)
  for (const limit of limits) {
    if (limit === null) continue
    const allowed = expandPermissions(limit)
    keys = new Set([...keys].filter(key => allowed.has(key)))
  }
  return keys
}

/** Whether a list grants every assignable key: a token with only such limits counts as unrestricted. */
export function grantsAll(granted: readonly string[]): boolean {
  if (granted.includes(wildcard)) return true
  return granted.length >= assignable.size && assignable.isSubsetOf(new Set(granted))
}

/** The assignable keys that the holder lacks; the wildcard is among them unless all are held. */
export function keysBeyond(held: ReadonlySet<string>): string[] {
  const missing = assignablePermissions.filter(key => !held.has(key))
  return missing.length > 0 ? [wildcard, ...missing] : []
}
