// Which permissions may be given, and by whom: nobody gives what they do not hold, and what service accounts hold is
// given by commands alone (decision G-03).
import { invalidField } from '../platform/http/api-error.ts'
import type { Caller } from '../platform/http/caller.ts'
import { expandPermissions, isAssignable, isServicePermission } from './permission-keys.ts'

/** Refuses permissions that may not be granted here: unknown ones, and those of service accounts. */
export function checkAssignable(permissions: readonly string[], field: string, allowService = false): void {
  for (const permission of permissions) {
    if (isServicePermission(permission) && !allowService)
      throw invalidField(field, 'service_permission', { permission })
    if (!isAssignable(permission) && !isServicePermission(permission))
      throw invalidField(field, 'unknown_permission', { permission })
  }
}

/** Refuses permissions that may not be granted here, and those that the caller does not hold. */
export function checkGiving(caller: Caller, permissions: readonly string[], field: string): void {
  checkAssignable(permissions, field)
  if (caller.actsAsSuperAdmin) return
  for (const permission of expandPermissions(permissions))
    if (!caller.permissions.has(permission)) throw invalidField(field, 'permission_not_held', { permission })
}
