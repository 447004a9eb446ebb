// Where the certificates of sites are served: an enabled site that names one is a deployment of it (group 6 of the
// catalogue), made by the link and gone with it.
import { sql } from 'drizzle-orm'
import { type Listener, tlsPortOf } from '../../../core/proxies/proxy-config.ts'
import { insertDeployment } from '../certificates/deployments.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { Editor } from '../resources/editor.ts'

const HTTPS_PORT = 443

type Served = { site: string; certificate: string; host: string; is_known: boolean }

/** Makes and removes what the sites of a proxy, or one of them, say now. Throws 422 at the limit of a certificate. */
export async function linkCertificates(
  tx: Tx,
  { companyId, userId }: Editor,
  proxyId: string,
  siteId: string | null = null,
): Promise<void> {
  const [proxy] = await tx.db.execute<{ listen: readonly Listener[] }>(sql`
    select listen from proxies where company_id = ${companyId} and id = ${proxyId} and deleted_at is null and enabled`)
  const port = proxy ? (proxy.listen.length === 0 ? HTTPS_PORT : tlsPortOf(proxy.listen)) : null
  const isMeant = sql`s.company_id = ${companyId} and s.proxy_id = ${proxyId}
    and (${siteId}::uuid is null or s.id = ${siteId}::uuid)`
  // A name below a wildcard is nobody's that could be asked for.
  const isServed = sql`${isMeant} and s.deleted_at is null and s.enabled and s.certificate_id is not null
    and s.hostnames[1] not like '*%' and ${port}::int is not null`
  await tx.db.execute(sql`
    delete from certificate_deployments d using proxy_sites s
    where d.company_id = ${companyId} and d.kind = 'proxy_site' and d.made_by = 'link' and d.target_id = s.id
      and ${isMeant} and not coalesce(${isServed} and d.certificate_id = s.certificate_id and d.host = s.hostnames[1]
        and d.port = ${port}::int, false)`)
  if (port === null) return
  const served = await tx.db.execute<Served>(sql`
    select s.id as site, s.certificate_id as certificate, s.hostnames[1] as host, d.id is not null as is_known
    from proxy_sites s left join certificate_deployments d on d.company_id = s.company_id and d.kind = 'proxy_site'
      and d.target_id = s.id and d.certificate_id = s.certificate_id
    where ${isServed}`)
  for (const { site, certificate, host, is_known } of served)
    if (!is_known)
      await insertDeployment(tx, {
        companyId,
        certificateId: certificate,
        kind: 'proxy_site',
        targetId: site,
        host,
        port,
        sni: null,
        madeBy: 'link',
        userId,
      })
}
