// The permission keys and what a holder of them may do (decisions G-03, G-67). The built-in roles are rows of the database.

/** Given by the commands of the hub or a super admin only; the wildcard does not include them. */
export const servicePermissions = ['monitoring.collector', 'security.matcher'] as const

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
export const isKnownPermission = (permission: string): boolean =>
  isAssignable(permission) || isServicePermission(permission)

/** The keys that a list grants: the wildcard stands for every assignable one, and for no service permission. */
export function expandPermissions(granted: readonly string[]): Set<string> {
  const keys = new Set<string>()
  for (const key of granted) {
    if (key === wildcard) for (const each of assignablePermissions) keys.add(each)
    else keys.add(key)
  }
  return keys
}

/** The entries of a list of which each alone grants `permission`. */
export const grantersOf = (permission: string): readonly string[] =>
  assignable.has(permission) ? [permission, wildcard] : [permission]

/** What a token may do: never more than its user; narrowed to its own list when it has one. */
export function effectivePermissions(ofUser: readonly string[], ofToken: readonly string[] | null): Set<string> {
  const user = expandPermissions(ofUser)
  if (ofToken === null) return user
  const token = expandPermissions(ofToken)
  return new Set([...user].filter(key => token.has(key)))
}
