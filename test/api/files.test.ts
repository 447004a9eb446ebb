// Files of companies: what they are is told from their content, and they come back as they were.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { attachmentOf, rangeOf } from '../../apps/hub/files/download.ts'
import { fileTypeOf } from '../../apps/hub/files/file-type.ts'
import { filesToAttach } from '../../apps/hub/files/files.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { type Acme, acme, manifest, submit } from './iac-rig.ts'

let hub: TestHub
let own: Acme
const MIB = 1024 * 1024

beforeAll(async () => {
  hub = await TestHub.start()
  own = await acme(hub)
})
afterAll(() => hub.stop())

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
const upload = (name: string, content: Buffer, by: Tenant = own): Promise<{ status: number; body: Json }> => {
  const form = new FormData()
  form.set('file', new File([Uint8Array.from(content)], name))
  return fetch(`${hub.url}/api/v1/files`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${by.token}` },
    body: form,
  }).then(async response => ({ status: response.status, body: await response.json() }))
}
const send = (name: string, content: Buffer) =>
  own.call('POST', '/files', { name, content_base64: content.toString('base64') })
const get = (id: string, headers: Record<string, string> = {}, token = own.token) =>
  fetch(`${hub.url}/api/v1/files/${id}/download`, { headers: { Authorization: `Bearer ${token}`, ...headers } })

describe('uploads', () => {
  test('a form without its file is refused by the name of what is missing', async () => {
    const form = new FormData()
    form.set('other', 'x')
    const answer = await fetch(`${hub.url}/api/v1/files`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${own.token}` },
      body: form,
    })
    const body: Json = await answer.json()
    expect([answer.status, Object.keys(body.errors)]).toEqual([422, ['file']])
  })

  test('[RES-286] what was uploaded comes back, whole and in ranges, over several sealed blocks', async () => {
    const content = Buffer.concat([bytes('%PDF-1.7\n'), randomBytes(2 * MIB + 4321)])
    const { status, body } = await upload('plan.pdf', content)
    expect([status, body.data.size, body.data.type]).toEqual([201, content.byteLength, 'application/pdf'])
    const sha256 = createHash('sha256').update(content).digest('hex')
    expect(body.data).toMatchObject({ sha256, name: 'plan.pdf', attached_to: [], uploaded_by: { id: own.userId } })
    const whole = await get(body.data.id)
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-type': 'application/pdf',
      'content-disposition': `attachment; filename="plan.pdf"; filename*=UTF-8''plan.pdf`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'content-length': String(content.byteLength),
      etag: `"${sha256}"`,
    })
    expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true)
    for (const [range, from, to] of [
      ['bytes=0-0', 0, 0],
      [`bytes=${MIB - 2}-${2 * MIB + 1}`, MIB - 2, 2 * MIB + 1],
      [`bytes=${2 * MIB}-`, 2 * MIB, content.byteLength - 1],
      ['bytes=-7', content.byteLength - 7, content.byteLength - 1],
    ] as const) {
      const part = await get(body.data.id, { Range: range })
      expect([part.status, part.headers.get('content-range')]).toEqual([
        206,
        `bytes ${from}-${to}/${content.byteLength}`,
      ])
      expect(Buffer.from(await part.arrayBuffer()).equals(content.subarray(from, to + 1))).toBe(true)
    }
    expect((await get(body.data.id, { Range: `bytes=${content.byteLength}-` })).status).toBe(416)
    const known = await get(body.data.id, { 'If-None-Match': `"${sha256}"` })
    expect([known.status, await known.text()]).toEqual([304, ''])
    const changed = await get(body.data.id, { Range: 'bytes=0-3', 'If-Range': '"another"' })
    expect(changed.status).toBe(200)
    await changed.body?.cancel()
    const blocks = await hub.hub.database.client<{ content: Uint8Array }[]>`
      select b.content from stored_blocks b join files f on f.object_id = b.object_id where f.id = ${body.data.id}`
    expect(blocks).toHaveLength(3)
    expect(blocks.some(block => Buffer.from(block.content).includes(content.subarray(0, 9)))).toBe(false)
  })

  test('[RES-285] the type is told from the content, whatever the name', async () => {
    const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), randomBytes(20)])
    expect((await send('x.pdf', png)).body.data.type).toBe('image/png')
    for (const text of [
      '<!DOCTYPE html><p>x',
      ' \n<!-- c --><HTML>',
      '<?xml version="1.0"?>\n<svg xmlns="x"/>',
      'a <script>b',
    ]) {
      const refused = await send('x.txt', bytes(text))
      expect([text, refused.status, Object.keys(refused.body.errors)]).toEqual([text, 422, ['file']])
    }
  })

  test('[RES-284] empty, refused and too large files, and a company that is full', async () => {
    expect(Object.keys((await upload('x', Buffer.alloc(0))).body.errors)).toEqual(['file'])
    expect(Object.keys((await own.call('POST', '/files', { name: 'x' })).body.errors)).toEqual(['file'])
    expect((await upload('x', Buffer.alloc(20 * MIB + 1, 'a'))).status).toBe(413)
    expect((await upload('x', Buffer.alloc(29 * MIB, 'a'))).status).toBe(413)
    const full = await hub.tenant()
    await hub.hub.database.client`
      insert into setting_values (key, value) values ('files.company_bytes', to_jsonb(${MIB}::int))`
    await hub.hub.state.refresh()
    expect((await upload('half', Buffer.alloc(MIB / 2, 'a'), full)).status).toBe(201)
    const over = await upload('over', Buffer.alloc(MIB / 2 + 1, 'a'), full)
    expect([over.status, over.body.reason, Object.keys(over.body.errors)]).toEqual([422, 'company_quota', ['limit']])
    const left = await hub.hub.database
      .client`select count(*)::int as n from stored_objects where company_id = ${full.companyId}`
    expect(left[0]?.n).toBe(1)
    await hub.hub.database.client`delete from setting_values where key = 'files.company_bytes'`
    await hub.hub.state.refresh()
  })

  test('[RES-286] [RES-287] any name is text: it adds no header and touches no path', async () => {
    for (const name of ['../../x', 'báo cáo "quý".txt', 'a\r\nSet-Cookie: x=1', "l'été;x=y"]) {
      const { body } = await send(name, bytes('plain'))
      expect(body.data.name).toBe(name)
      const { headers } = await get(body.data.id)
      const shown = headers.get('content-disposition') ?? ''
      expect(decodeURIComponent(/filename\*=UTF-8''(\S+)$/.exec(shown)?.[1] ?? '')).toBe(name)
      expect([headers.get('set-cookie'), shown.split('"').length]).toEqual([null, 3])
    }
    expect(attachmentOf('a/b\\c%d"e')).toStartWith('attachment; filename="a_b_c_d_e";')
  })
})

describe('files of a company', () => {
  test('[RES-287] one that something refers to is not deleted, and says by what', async () => {
    const { body } = await send('plan.txt', bytes('plan'))
    const { id } = body.data
    const { client } = hub.hub.database
    const runId = crypto.randomUUID()
    const [before] = await client`select pg_get_viewdef('file_referrers'::regclass) as definition`
    await client.unsafe(`create or replace view file_referrers as select '${id}'::uuid as file_id, 'iac_run'::text as kind,
      '${runId}'::uuid as id, 'Night'::text as name, 'attachments'::text as field`)
    const refused = await own.call('DELETE', `/files/${id}`)
    expect([refused.status, refused.body.reason, refused.body.referrers_total]).toEqual([409, 'in_use', 1])
    expect(refused.body.referrers).toEqual([{ kind: 'iac_run', id: runId, name: 'Night', field: 'attachments' }])
    const attached = (await own.call('GET', '/files?attached=1')).body.data
    expect(attached.map((file: Json) => [file.id, file.attached_to[0].kind])).toEqual([[id, 'iac_run']])
    await client.unsafe(`create or replace view file_referrers as ${before?.definition}`)
    expect((await own.call('DELETE', `/files/${id}`)).status).toBe(204)
    expect((await own.call('GET', `/files/${id}`)).status).toBe(404)
    expect(
      await client`select id from stored_objects o where not exists (select 1 from files f where f.object_id = o.id)`,
    ).toHaveLength(0)
  })

  test('[RES-287] one that is about to be referred to is not deleted before that is done', async () => {
    const { id } = (await send('plan.txt', bytes('plan'))).body.data
    const foreign = (await upload('plan.txt', bytes('plan'), await hub.tenant())).body.data.id
    const deletions: Promise<Json>[] = []
    const taken = await inTransaction(hub.hub.database.db, async tx => {
      const found = await filesToAttach(tx, own.companyId, [id, foreign])
      deletions.push(own.call('DELETE', `/files/${id}`))
      await until('the deletion waits', async () => {
        const [row] = await hub.hub.database.client`select count(*)::int as n from pg_stat_activity
          where wait_event_type = 'Lock' and datname = current_database()`
        return row?.n === 1
      })
      return found
    })
    expect(taken.map(file => [file.id, file.bytes])).toEqual([[id, 4]])
    expect((await deletions[0]).status).toBe(204)
  })

  test('[RES-287] a file is deleted or attached, never both', async () => {
    const run = await submit(hub, own, [manifest(own.slug, 'server', 'race', {})])
    const path = `/iac/runs/${run.id}/attachments`
    for (let round = 0; round < 20; round++) {
      const { id } = (await send('plan.txt', bytes('plan'))).body.data
      const [deleted, attached] = await Promise.all([
        own.call('DELETE', `/files/${id}`),
        own.call('POST', path, { file_id: id }),
      ])
      if (attached.status === 201) {
        expect(deleted.status).toBe(409)
        expect((await get(id)).status).toBe(200)
        await own.call('DELETE', `${path}/${attached.body.data.id}`)
      } else {
        expect([deleted.status, attached.status]).toEqual([204, 422])
        expect(Object.keys(attached.body.errors)).toEqual(['file_id'])
      }
    }
  })

  test('[RES-279] a file is found by its name from its first moment to its last, in its company', async () => {
    const { body } = await send('wiring-of-hall-seven.txt', bytes('cable 4 goes to rack 9'))
    const stranger = await hub.tenant()
    const find = async (by: Tenant, q: string) =>
      (await by.call('GET', `/search?kinds=file&q=${q}`)).body.data.map((hit: Json) => [hit.name, hit.link])
    const link = `/files/${body.data.id}`
    expect(await find(own, 'hall-seven')).toEqual([['wiring-of-hall-seven.txt', link]])
    expect(await find(stranger, 'hall-seven')).toEqual([])
    await own.call('PATCH', link, { name: 'wiring-of-hall-eight.txt' })
    expect(await find(own, 'hall-eight')).toEqual([['wiring-of-hall-eight.txt', link]])
    await own.call('DELETE', link)
    expect(await find(own, 'hall-eight')).toEqual([])
  })

  test('[RES-009] a change of a file says of which version it is, and an old one is refused', async () => {
    const made = await send('versioned.txt', bytes('x'))
    const path = `/files/${made.body.data.id}`
    expect([made.headers.get('etag'), made.headers.get('location')]).toEqual(['"1"', `/api/v1${path}`])
    const change = (body: Json, headers: Record<string, string> = {}) => own.call('PATCH', path, body, headers)
    const fresh = await change({ name: 'second.txt' }, { 'If-Match': '"1"' })
    expect([fresh.status, fresh.headers.get('etag')]).toEqual([200, '"2"'])
    const old = await change({ name: 'third.txt' }, { 'If-Match': '"1"' })
    expect([old.status, old.body.reason, old.body.current_version]).toEqual([412, 'version_conflict', 2])
    expect((await change({ name: 'third.txt', version: 1 })).status).toBe(409)
    expect((await own.call('DELETE', path, undefined, { 'If-Match': '"1"' })).status).toBe(412)
    expect((await own.call('GET', path)).body.data).toMatchObject({ name: 'second.txt', version: 2 })
  })

  test('[RES-011] a file that the client has in its newest version is not sent again', async () => {
    const made = await send('known.txt', bytes('x'))
    const path = `/files/${made.body.data.id}`
    const ask = (known: string) => own.call('GET', path, undefined, { 'If-None-Match': known })
    for (const known of ['"1"', 'W/"1"', '"7", "1"', '*']) {
      const { status, body, headers } = await ask(known)
      expect([known, status, body, headers.get('etag')]).toEqual([known, 304, null, '"1"'])
    }
    await own.call('PATCH', path, { name: 'renamed.txt' })
    const changed = await ask('"1"')
    expect([changed.status, changed.headers.get('etag')]).toEqual([200, '"2"'])
  })

  test('[RES-003] [RES-005] [RES-008] renaming is audited, and nobody else finds it', async () => {
    const { body } = await send('a.txt', bytes('a: 1\n'))
    const { id } = body.data
    const renamed = await own.call('PATCH', `/files/${id}`, { name: 'b.yaml', description: 'the plan' })
    expect(renamed.body.data).toMatchObject({
      name: 'b.yaml',
      description: 'the plan',
      version: 2,
      type: 'application/yaml',
    })
    expect((await own.call('PATCH', `/files/${id}`, { name: 'b.yaml' })).body.data.version).toBe(2)
    const { data } = (await own.call('GET', `/audit-log?subject=${id}`)).body
    expect(data.map((entry: Json) => entry.action)).toEqual(['file.update', 'file.create'])
    const stranger = await hub.tenant()
    for (const method of ['GET', 'PATCH', 'DELETE'])
      expect((await stranger.call(method, `/files/${id}`, method === 'PATCH' ? { name: 'x' } : undefined)).status).toBe(
        404,
      )
    expect((await get(id, {}, stranger.token)).status).toBe(404)
    const viewer = await hub.user(own.companyId, ['files.view'])
    expect((await viewer.call('DELETE', `/files/${id}`)).status).toBe(403)
    expect((await get(id, {}, viewer.token)).status).toBe(200)
  })
})

describe('what a file is', () => {
  const typed = (content: Buffer | string) => {
    const found = fileTypeOf(typeof content === 'string' ? Buffer.from(content) : content)
    return typeof found === 'object' ? found.refused : found
  }
  test('[R-074] programs, markup and private keys are refused; what is kept has a name', () => {
    const cases: readonly (readonly [Buffer | string, string])[] = [
      [bytes('\x7fELF\x02\x01'), 'executable'],
      [bytes('MZ\x90\x00'), 'executable'],
      [Buffer.from([0xfe, 0xed, 0xfa, 0xcf, 1]), 'executable'],
      [Buffer.from([0xcf, 0xfa, 0xed, 0xfe, 1]), 'executable'],
      [Buffer.from([0xca, 0xfe, 0xba, 0xbe, 1]), 'executable'],
      ['#!/bin/sh\necho', 'executable'],
      ['\ufeff#!/bin/sh', 'executable'],
      ['\ufeff<html>', 'markup'],
      ['x\n<svg onload="x">', 'markup'],
      ['-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----', 'private_key'],
      ['-----BEGIN CERTIFICATE-----\nAA==\n', 'application/x-pem-file'],
      [bytes('\x00\x01\x02\x03'), 'unknown'],
      [bytes('caf\xe9'), 'unknown'],
      [bytes('\xff\xd8\xff\xe0'), 'image/jpeg'],
      ['GIF89a', 'image/gif'],
      [bytes('RIFF\x01\x00\x00\x00WEBPVP8 '), 'image/webp'],
      [bytes('PK\x03\x04'), 'application/zip'],
      [bytes('\x1f\x8b\x08'), 'application/gzip'],
      ['{"a": 1}', 'application/json'],
      ['{broken', 'text/plain'],
      ['a,b\n1,"2,3"\n', 'text/csv'],
      ['# c\nkind: subnet\n', 'application/yaml'],
      ['A note: hello', 'text/plain'],
      ['1 < 2 and a <= b', 'text/plain'],
    ]
    for (const [content, expected] of cases)
      expect([content.toString(), typed(content)]).toEqual([content.toString(), expected])
  })

  test('[R-074] a file of brackets alone is a text, whatever it would be if they were closed', () => {
    const brackets = (count: number) => new TextEncoder().encode('['.repeat(count))
    expect(fileTypeOf(brackets(20_000_000))).toBe('text/plain')
    expect(fileTypeOf(new TextEncoder().encode('[[1], {"a": []}]'))).toBe('application/json')
  })

  test('[R-074] ranges that ask for nothing, and malformed ones', () => {
    expect(rangeOf('bytes=5-2', 10)).toBeNull()
    expect(rangeOf('bytes=0-1,4-5', 10)).toBeNull()
    expect(rangeOf('lines=0-1', 10)).toBeNull()
    expect(rangeOf('bytes=-', 10)).toBeNull()
    expect(rangeOf('bytes=-0', 10)).toBe('outside')
    expect(rangeOf('bytes=10-', 10)).toBe('outside')
    expect(rangeOf('bytes=-99', 10)).toEqual({ from: 0, to: 9 })
  })
})
