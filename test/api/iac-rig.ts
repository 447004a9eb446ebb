// What tests of manifests share: a company with its slug, and manifests as text.
import { stringify } from 'yaml'
import { type Json, type Tenant, type TestHub, until } from './hub-harness.ts'

export type Acme = Tenant & { readonly slug: string }

export async function acme(hub: TestHub, more: Parameters<TestHub['tenant']>[1] = {}): Promise<Acme> {
  const tenant = await hub.tenant(undefined, more)
  const me = await tenant.call('GET', '/me')
  return { ...tenant, slug: me.body.data.company.slug }
}

type Sent = { readonly path: string; readonly contents: string }

/** A manifest of a kind under its usual path. */
export function manifest(slug: string, kind: string, name: string, spec: Json, more: Json = {}): Sent {
  const value = { apiVersion: 'hub/v1', kind, metadata: { company: slug, name }, ...more, spec }
  return { path: `${kind}/${slug}/${name}.yml`, contents: stringify(value) }
}

export const absent = (slug: string, kind: string, name: string): Sent =>
  manifest(slug, kind, name, {}, { ensure: 'absent' })

/** A token of its own for each submission: a token may submit ten times a minute. */
export async function submit(
  hub: TestHub,
  by: { readonly userId: string },
  manifests: readonly Sent[],
  more: Json = {},
): Promise<Json> {
  const { call } = await hub.token(by.userId)
  const { status, body } = await call('POST', '/iac/runs', { manifests, ...more })
  if (status !== 201) throw new Error(`POST /iac/runs answered ${status}: ${JSON.stringify(body)}`)
  return body.data
}

/** Applies a run and waits until nothing of it is queued. */
export async function applied(by: Pick<Tenant, 'call'>, id: string): Promise<Json> {
  const { status, body } = await by.call('POST', `/iac/runs/${id}/apply`)
  if (status !== 202) throw new Error(`apply answered ${status}: ${JSON.stringify(body)}`)
  return until('the run is no longer queued', async () => {
    const run = (await by.call('GET', `/iac/runs/${id}`)).body.data
    return run.queued_at === null && run
  })
}
