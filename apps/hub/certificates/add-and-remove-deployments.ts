// What people may say of where a certificate is served: which places they may add, and which they may not take away.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import { refuseTarget } from '../platform/outbound-guard.ts'
import type { Editor } from '../resources/editor.ts'
import { lockRow } from '../resources/resource-rows.ts'
import { updateResource } from '../resources/write-resource.ts'
import { type Certificate, certificateKind } from './certificate.ts'
import { insertDeployment } from './deployments.ts'
import { endpointFault, normalEndpoint, placeText } from './endpoint.ts'
import { keepMonitorChecks } from './monitor-checks.ts'
import { storeJudgement } from './store-judgement.ts'

const PORT_DEFAULT = 443

type GivenDeployment = {
  readonly kind: 'endpoint' | 'server'
  readonly host?: string | null | undefined
  readonly port?: number | null | undefined
  readonly sni?: string | null | undefined
  readonly server_id?: string | null | undefined
}

type Place = {
  readonly targetId: string | null
  readonly host: string | null
  readonly port: number
  readonly sni: string | null
}

const subjectOf = ({ id, name }: Certificate) => ({ type: 'certificate', id, name })

/** Throws 422. */
async function endpointOf({ hub }: Editor, { host, port, sni }: GivenDeployment): Promise<Place> {
  if (!host) throw invalidField('host', 'required')
  const fault = endpointFault({ host, sni })
  if (fault) throw faultsError(new Map([[fault.field, fault.text]]))
  const endpoint = normalEndpoint({ host, port, sni })
  await refuseTarget(hub.config, 'host', endpoint.host)
  return { targetId: null, ...endpoint }
}

/** A server of the company, looked at by its address of then. Throws 422. */
async function serverPlace(tx: Tx, { hub, companyId }: Editor, given: GivenDeployment): Promise<Place> {
  const { server_id: serverId, port, sni = null } = given
  if (!serverId) throw invalidField('server_id', 'required')
  const [server] = await tx.db.execute<{ address: string | null }>(sql`
    select coalesce(ip_address, hostname) as address from servers
    where company_id = ${companyId} and id = ${serverId} and deleted_at is null`)
  if (!server) throw invalidField('server_id', 'unknown_reference')
  if (server.address === null) throw invalidField('server_id', 'server_without_address')
  const { sni: name } = normalEndpoint({ host: server.address, sni })
  await refuseTarget(hub.config, 'server_id', server.address)
  return { targetId: serverId, host: null, port: port ?? PORT_DEFAULT, sni: name }
}

/** Says where a certificate is served. Returns the id of the deployment. Throws 422. */
export async function addDeployment(
  tx: Tx,
  editor: Editor,
  certificate: Certificate,
  given: GivenDeployment,
): Promise<string> {
  const { hub, companyId, userId } = editor
  const current = await lockRow(certificateKind, tx, companyId, certificate.id)
  const certificateId = current.id
  const place = given.kind === 'server' ? await serverPlace(tx, editor, given) : await endpointOf(editor, given)
  const { kind } = given
  const id = await insertDeployment(tx, { companyId, certificateId, kind, ...place, madeBy: 'hand', userId })
  if (id === null) throw invalidField(kind === 'server' ? 'server_id' : 'host', 'deployment_exists')
  await editor.record(tx, 'certificate.deploy', subjectOf(certificate), {
    deployment: {
      old: null,
      new: place.host === null ? `${place.targetId}:${place.port}` : placeText(place.host, place.port),
    },
  })
  if (current.monitor.enabled) await keepMonitorChecks(tx, editor, certificateId, current)
  await storeJudgement(tx, hub, certificateKind.info, companyId, certificateId)
  return id
}

type Removed = {
  readonly id: string
  readonly made_by: string
  readonly kind: string
  readonly host: string | null
  readonly port: number
  readonly sni: string | null
}

/** Throws 422 for a place that comes with something else, and for the only one that a certificate is known by. */
export async function removeDeployment(tx: Tx, editor: Editor, certificate: Certificate, id: string): Promise<void> {
  const { hub, companyId } = editor
  const current = await lockRow(certificateKind, tx, companyId, certificate.id)
  const { endpoint, pem } = current
  const [place] = await tx.db.execute<Removed>(sql`
    select id, made_by, kind, host, port, sni from certificate_deployments
    where company_id = ${companyId} and certificate_id = ${certificate.id} and id = ${id}`)
  if (!place) return
  if (place.made_by === 'link') throw invalidField('deployment', 'deployment_linked')
  const isEndpoint =
    place.kind === 'endpoint' &&
    endpoint !== null &&
    endpoint.host === place.host &&
    endpoint.port === place.port &&
    endpoint.sni === place.sni
  if (isEndpoint) {
    if (pem === null) throw invalidField('deployment', 'deployment_last')
    await updateResource(tx, certificateKind, editor, certificate.id, { endpoint: null }, { action: 'undeploy' })
    return
  }
  await tx.db.execute(sql`
    delete from certificate_deployments where company_id = ${companyId} and certificate_id = ${certificate.id}
      and id = ${id}`)
  await editor.record(tx, 'certificate.undeploy', subjectOf(certificate), {
    deployment: { old: place.host === null ? `${place.port}` : placeText(place.host, place.port), new: null },
  })
  if (current.monitor.enabled) await keepMonitorChecks(tx, editor, certificate.id, current)
  await storeJudgement(tx, hub, certificateKind.info, companyId, certificate.id)
}
