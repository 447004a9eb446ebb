// Looks at the places where certificates are served: by the clock, and when somebody asks. A newer leaf with
// the same names becomes a version; everything else follows from what was seen (store-judgement.ts).
import { sql } from 'drizzle-orm'
import pLimit from 'p-limit'
import type { Unchecked } from '../../../core/json-object.ts'
import { splitWildcards } from '../../../core/proxies/site-fields.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { NoConnection } from '../platform/open-connection.ts'
import { resolveTarget } from '../platform/outbound-guard.ts'
import { type Editor, hubEditor } from '../resources/editor.ts'
import { lockRow } from '../resources/resource-rows.ts'
import { RunFailed } from '../resources/runs.ts'
import { updateResource } from '../resources/write-resource.ts'
import { wayOutOf } from '../way-out/forward-proxy.ts'
import { type Certificate, certificateKind } from './certificate.ts'
import { type Chain, chainOfDer, type TrustedRoots } from './chain.ts'
import { type Deployment, deploymentsOf, placeOf, ruleHostsOf } from './deployments.ts'
import { askedName } from './endpoint.ts'
import { hasSameNames, isGoodFor } from './good-for-host.ts'
import { rootsOf, storeJudgement } from './store-judgement.ts'
import { tellRenewal } from './tell-renewal.ts'
import { lookAtTls, NotSeen } from './tls-look.ts'
import { storeVersion } from './versions.ts'

/** At most so many connections of one hub at once (RES-117). */
const CONNECTIONS_MAX = 20

type Seen = { readonly place: Deployment } & (
  | { readonly error: string }
  | { readonly error: null; readonly chain: Chain; readonly tlsVersion: string }
)

const connections = pLimit(CONNECTIONS_MAX)

/** The names that may be asked for where only an address is known: a wildcard stands for any name below it. */
function namesToAsk({ hostnames, sans, common_name: commonName }: Certificate, ruleHosts: readonly string[]): string[] {
  const fitting = ruleHosts.filter(host => isGoodFor({ sans, commonName }, host))
  const { wild, exact } = splitWildcards([...fitting, ...hostnames])
  return [...exact, ...wild.map(name => `www${name.slice(1)}`)]
}

/**
 * The name that clients ask for. Of servers and virtual servers only an address is known: there it is that of a rule
 * which the certificate is good for, else one of the certificate's own.
 */
const nameFor = (
  { kind, host, sni }: Deployment,
  certificate: Certificate,
  ruleHosts: readonly string[],
): string | null =>
  (kind === 'server' || kind === 'virtual_server') && sni === null
    ? (namesToAsk(certificate, ruleHosts).find(name => askedName({ host: name, sni: null }) !== null) ?? null)
    : askedName({ host: host ?? '', sni })

type LookedAt = Deployment & { readonly ruleHosts: readonly string[] }

async function lookAt(hub: Hub, certificate: Certificate, place: LookedAt, roots: TrustedRoots): Promise<Seen> {
  if (place.host === null) return { place, error: 'no_address' }
  const resolved = await resolveTarget(hub.config, place.host)
  if ('fault' in resolved) return { place, error: resolved.fault }
  try {
    const { addresses } = resolved
    const via = await wayOutOf(hub, certificate.company_id, 'probes', place.host, addresses)
    const name = nameFor(place, certificate, place.ruleHosts)
    const { sent, tlsVersion } = await lookAtTls(addresses[0] ?? '', place.port, name, via)
    return { place, error: null, chain: chainOfDer(sent, roots, new Date(hub.now())), tlsVersion }
  } catch (error) {
    if (error instanceof NoConnection) return { place, error: error.fault }
    return { place, error: error instanceof NotSeen ? error.message : 'unreadable' }
  }
}

async function storeSeen(tx: Tx, companyId: string, seen: readonly Seen[], now: Date): Promise<void> {
  const rows = seen.map(each => ({
    id: each.place.id,
    error: each.error,
    fingerprint: each.error === null ? each.chain.leaf.fingerprint : null,
    not_after: each.error === null ? each.chain.leaf.notAfter : null,
    chain_complete: each.error === null ? each.chain.complete : null,
    tls_version: each.error === null ? each.tlsVersion : null,
  }))
  await tx.db.execute(sql`
    update certificate_deployments d set error = x.error, fingerprint_sha256 = x.fingerprint, not_after = x.not_after,
      chain_complete = x.chain_complete, tls_version = x.tls_version, checked_at = ${now.toISOString()}::timestamptz
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, error text, fingerprint text,
      not_after timestamptz, chain_complete boolean, tls_version text)
    where d.company_id = ${companyId} and d.id = x.id`)
}

/** Takes a leaf that was seen as a version, when it is one of the certificate. */
async function takeVersion(tx: Tx, editor: Editor, id: string, chain: Chain): Promise<void> {
  const current = await lockRow(certificateKind, tx, editor.companyId, id)
  const { fingerprint_sha256: fingerprint, sans, common_name: commonName } = current
  const { leaf } = chain
  if (fingerprint !== null && !hasSameNames({ sans, commonName }, leaf)) return
  // A server may send less of the chain than was uploaded, and an operator less than a server sends.
  if (leaf.fingerprint === fingerprint && (!chain.complete || current.chain?.complete === true)) return
  await storeVersion(tx, { companyId: editor.companyId, certificateId: id, chain, source: 'observed', userId: null })
  if (current.not_before !== null && leaf.notBefore < current.not_before) return
  const columns = { pem: chain.pem, ...(fingerprint === null ? { source: 'observed' } : {}) }
  await updateResource(tx, certificateKind, editor, id, {}, { columns, action: 'observe', note: leaf.fingerprint })
}

/** Looks at some places of a certificate and stores what was seen. Throws 404 when it is gone meanwhile. */
export async function lookAtCertificate(
  hub: Hub,
  certificate: Certificate,
  places: readonly Deployment[],
): Promise<readonly Seen[]> {
  const { id, company_id: companyId } = certificate
  const { db } = hub.database
  const roots = await rootsOf(hub, db, companyId)
  const ruleHosts = await ruleHostsOf(db, companyId, places)
  const lookedAt = places.map((place): LookedAt => ({ ...place, ruleHosts: ruleHosts.get(place.id) ?? [] }))
  const seen = await Promise.all(lookedAt.map(place => connections(() => lookAt(hub, certificate, place, roots))))
  const editor = hubEditor(hub, companyId)
  await inTransaction(db, async tx => {
    await lockRow(certificateKind, tx, companyId, id)
    for (const each of seen) if (each.error === null) await takeVersion(tx, editor, id, each.chain)
    await storeSeen(tx, companyId, seen, new Date(hub.now()))
    const seenIds = new Set(places.map(place => place.id))
    await storeJudgement(tx, hub, certificateKind.info, companyId, id, seenIds)
  })
  return seen
}

/** Looks at every place now. The result of the run. Throws RunFailed. */
async function checkCertificate({ hub, companyId }: Editor, row: Certificate): Promise<Unchecked> {
  const { db } = hub.database
  const seen = await lookAtCertificate(hub, row, await deploymentsOf(db, companyId, [row.id]))
  if (seen.length > 0 && seen.every(({ error }) => error === 'target_not_allowed'))
    throw new RunFailed('target_not_allowed')
  const now = await deploymentsOf(db, companyId, [row.id])
  return {
    deployments: now.map(place => ({
      id: place.id,
      place: placeOf(place),
      state: place.state,
      error: place.error,
      fingerprint: place.fingerprint_sha256,
      not_after: place.not_after,
    })),
  }
}

type Given = { readonly editor: Editor; readonly row: Certificate }

export const certificateActs = {
  renew: { work: ({ editor, row }: Given): Promise<Unchecked> => tellRenewal(editor, row) },
  check: {
    work: ({ editor, row }: Given): Promise<Unchecked> => checkCertificate(editor, row),
  },
}
