// Users, roles, companies and teams as the API answers them (decisions G-03, G-04).
import { Type } from '@sinclair/typebox'
import { amount, id, listed, named, nullable, reference, string, time } from '../platform/http/response-schema.ts'

export const userResponse = named('User', {
  id: id(),
  company_id: nullable(id()),
  email: string(),
  name: string(),
  permissions: listed(string()),
  roles: listed(reference),
  super_admin: Type.Boolean(),
  language: string(),
  time_zone: string(),
  enabled: Type.Boolean(),
  created_at: time(),
})

export const roleResponse = named('Role', {
  id: id(),
  company_id: nullable(id()),
  name: string(),
  permissions: listed(string()),
  built_in: Type.Boolean(),
  created_at: time(),
})

const company = {
  id: id(),
  name: string(),
  slug: string(),
  parent_id: nullable(id()),
  plan_code: nullable(string()),
  plan_expires_at: nullable(time()),
  personal: Type.Boolean(),
  suspended_at: nullable(time()),
  created_at: time(),
}
export const companyResponse = named('Company', company)
export const companyWithPlan = named('CompanyWithPlan', {
  ...company,
  effective_plan: Type.Object({
    code: string(),
    agent_quota: nullable(amount()),
    metrics_retention_days: nullable(amount()),
  }),
})
export const grantHolder = named('GrantHolder', { id: id(), name: string(), email: string() })
export const grantResponse = named('Grant', { company_id: id(), user: reference })

export const teamResponse = named('Team', {
  id: id(),
  company_id: id(),
  name: string(),
  members: listed(reference),
  created_at: time(),
})
