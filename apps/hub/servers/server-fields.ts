// What a request may give of a server: its fields, and how many tags.
import { isIP } from 'node:net'
import { Type } from '@sinclair/typebox'
import { invalidField } from '../platform/http/api-error.ts'
import { integer, listOf, oneOf, optional, text } from '../platform/http/request-schema.ts'
import { settableStatuses } from './server-response.ts'

export const TAGS_MAX = 50
const COUNT_MAX = 2_147_483_647

export const serverTags = listOf(text(128), TAGS_MAX)

export const serverFields = {
  hostname: optional(text(253)),
  ip_address: optional(text(64)),
  environment: optional(text(128)),
  role: optional(text(128)),
  datacenter: optional(text(128)),
  subnet_id: optional(text(64)),
  tags: optional(serverTags),
  operating_system: optional(text(255)),
  cpu_cores: optional(integer(1, COUNT_MAX)),
  memory_mb: optional(integer(1, COUNT_MAX)),
  disk_gb: optional(integer(1, COUNT_MAX)),
  status: Type.Optional(oneOf(settableStatuses)),
  notes: optional(text(10_000)),
}

export const newServer = Type.Object({ name: text(255), ...serverFields })

/** Throws 422 for what is no address. */
export function checkAddress(body: { ip_address?: string | null | undefined }): void {
  if (body.ip_address != null && isIP(body.ip_address) === 0) throw invalidField('ip_address', 'ip_address')
}
