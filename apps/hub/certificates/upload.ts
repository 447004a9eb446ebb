// A chain that is uploaded: a new version of a certificate that is known, by its id or its names, or a new one.
// A private key is read to see whether it fits, and dropped.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { Editor } from '../resources/editor.ts'
import { parseForm } from '../resources/resource-form.ts'
import { type Found, lockRow } from '../resources/resource-rows.ts'
import { insertResource, updateResource } from '../resources/write-resource.ts'
import { type Certificate, certificateKind, chainOfPem } from './certificate.ts'
import { type Chain, keyMatches } from './chain.ts'
import { namesOf } from './good-for-host.ts'
import { storeJudgement } from './store-judgement.ts'
import { storeVersion } from './versions.ts'

type Upload = {
  readonly pem: string
  readonly private_key?: string | null | undefined
  readonly certificate_id?: string | null | undefined
  readonly name?: string | null | undefined
}
type Uploaded = { readonly row: Found<Certificate>; readonly isNew: boolean; readonly keyMatches: boolean | null }

/** Null when no key was given. Throws 422 for one that does not fit. */
function checkKey(chain: Chain, key: string | null | undefined): boolean | null {
  if (key === null || key === undefined || key === '') return null
  const fits = keyMatches(chain, key)
  if (fits === null) throw invalidField('private_key', 'key_unreadable')
  if (!fits) throw invalidField('private_key', 'key_mismatch')
  return true
}

/** The one certificate of the company that is for the same names. */
async function sameNamed(tx: Tx, companyId: string, { leaf }: Chain): Promise<string | null> {
  const names = JSON.stringify([...new Set(leaf.sans)])
  const isSame =
    leaf.sans.length > 0
      ? sql`sans @> array(select jsonb_array_elements_text(${names}::jsonb))
          and sans <@ array(select jsonb_array_elements_text(${names}::jsonb))`
      : sql`cardinality(sans) = 0 and lower(common_name) = ${namesOf(leaf)[0] ?? ''}`
  const rows = await tx.db.execute<{ id: string }>(sql`
    select id from certificates where company_id = ${companyId} and deleted_at is null
      and fingerprint_sha256 is not null and ${isSame} limit 2`)
  if (rows.length > 1) throw invalidField('certificate_id', 'certificate_several')
  return rows[0]?.id ?? null
}

/** The certificate that is named. Throws 422. */
async function namedOne(tx: Tx, companyId: string, id: string): Promise<string> {
  const [row] = await tx.db.execute<{ id: string }>(sql`
    select id from certificates where company_id = ${companyId} and id = ${id} and deleted_at is null`)
  if (!row) throw invalidField('certificate_id', 'unknown_reference')
  return row.id
}

async function addVersion(tx: Tx, editor: Editor, id: string, chain: Chain): Promise<Found<Certificate>> {
  const { hub, companyId, userId } = editor
  const current = await lockRow(certificateKind, tx, companyId, id)
  if (current.pem === chain.pem) return current
  await storeVersion(tx, { companyId, certificateId: id, chain, source: 'uploaded', userId })
  if (current.not_before === null || chain.leaf.notBefore >= current.not_before) {
    const columns = { pem: chain.pem, source: current.pem === null ? 'uploaded' : current.source }
    return updateResource(
      tx,
      certificateKind,
      editor,
      id,
      {},
      { columns, action: 'upload', note: chain.leaf.fingerprint },
    )
  }
  // An older leaf is a version too, and says what old places serve; it takes no place.
  await storeJudgement(tx, hub, certificateKind.info, companyId, id)
  await editor.record(
    tx,
    'certificate.upload',
    { type: 'certificate', id, name: current.name },
    {
      fingerprint_sha256: { old: null, new: chain.leaf.fingerprint },
    },
  )
  return current
}

/** Stores a chain. Throws 422. */
export async function uploadCertificate(tx: Tx, editor: Editor, given: Upload): Promise<Uploaded> {
  const { companyId } = editor
  const chain = await chainOfPem(editor, tx.db, given.pem)
  const matches = checkKey(chain, given.private_key)
  const known = given.certificate_id
    ? await namedOne(tx, companyId, given.certificate_id)
    : await sameNamed(tx, companyId, chain)
  if (known !== null) return { row: await addVersion(tx, editor, known, chain), isNew: false, keyMatches: matches }
  const name = given.name ?? namesOf(chain.leaf)[0] ?? chain.leaf.subject
  const values: Unchecked = await parseForm(certificateKind, 'create', { name, pem: given.pem })
  const row = await insertResource(tx, certificateKind, editor, values, { action: 'upload' })
  return { row, isNew: true, keyMatches: matches }
}
