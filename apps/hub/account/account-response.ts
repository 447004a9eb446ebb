// The caller's profile and sessions as the API answers them.
import { Type } from '@sinclair/typebox'
import { id, listed, named, nullable, string, time } from '../platform/http/response-schema.ts'

export const profileResponse = named('Profile', {
  id: id(),
  email: string(),
  name: string(),
  language: string(),
  time_zone: string(),
  avatar: nullable(string()),
  super_admin: Type.Boolean(),
  company: nullable(Type.Object({ id: id(), name: string(), slug: string() })),
  permissions: listed(string()),
  created_at: time(),
})

export const sessionResponse = named('Session', {
  id: id(),
  ip: nullable(string()),
  user_agent: nullable(string()),
  created_at: time(),
  last_seen_at: time(),
  current: Type.Boolean(),
})
