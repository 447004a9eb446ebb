// Content that the hub keeps for companies, files and exports alike: blocks of 1 MiB, each sealed under the key of the
// hub and bound to its place, so that no block can be taken for another (decision R-074).
import { createHash, randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'

/** Of every block but the last, before it is packed and sealed: the place of a byte follows from it. */
const BLOCK_BYTES = 1024 * 1024
const PACK_LEVEL = 3

export type Kept = { readonly bytes: number; readonly sha256: string }

const placeOf = (objectId: string, block: number): string => `${objectId} ${block}`

/** Writes one object, block after block. */
export class ObjectWriter {
  readonly id = randomUUID()
  private readonly hash = createHash('sha256')
  private waiting: Uint8Array[] = []
  private waitingBytes = 0
  private bytes = 0
  private block = 0

  private constructor(
    private readonly hub: Pick<Hub, 'sealer'>,
    private readonly db: Executor,
    private readonly isPacked: boolean,
  ) {}

  /** `begunIn`: the transaction that also notes who the object is of, where its blocks are written outside of it. */
  static async begin(
    hub: Pick<Hub, 'sealer'>,
    db: Executor,
    companyId: string,
    isPacked: boolean,
    begunIn: Executor = db,
  ): Promise<ObjectWriter> {
    const writer = new ObjectWriter(hub, db, isPacked)
    await begunIn.execute(
      sql`insert into stored_objects (id, company_id, is_packed) values (${writer.id}, ${companyId}, ${isPacked})`,
    )
    return writer
  }

  async add(bytes: Uint8Array): Promise<void> {
    this.hash.update(bytes)
    this.bytes += bytes.byteLength
    let rest = bytes
    while (this.waitingBytes + rest.byteLength >= BLOCK_BYTES) {
      const room = BLOCK_BYTES - this.waitingBytes
      await this.store([...this.waiting, rest.subarray(0, room)])
      this.waiting = []
      this.waitingBytes = 0
      rest = rest.subarray(room)
    }
    if (rest.byteLength === 0) return
    this.waiting.push(rest)
    this.waitingBytes += rest.byteLength
  }

  private async store(parts: readonly Uint8Array[]): Promise<void> {
    const plain = Buffer.concat(parts)
    const packed = this.isPacked ? Bun.gzipSync(plain, { level: PACK_LEVEL }) : plain
    const content = Buffer.from(this.hub.sealer.sealBytes(packed, placeOf(this.id, this.block)))
    await this.db.execute(
      sql`insert into stored_blocks (object_id, block, content) values (${this.id}, ${this.block}, ${content})`,
    )
    this.block++
  }

  async finish(): Promise<Kept> {
    if (this.waitingBytes > 0) await this.store(this.waiting)
    return { bytes: this.bytes, sha256: this.hash.digest('hex') }
  }
}

export async function deleteObject(db: Executor, id: string): Promise<void> {
  await db.execute(sql`delete from stored_objects where id = ${id}`)
}

/** The bytes of one block. Throws when they were sealed with a key that is gone, or changed. */
async function readBlock(hub: Hub, objectId: string, block: number): Promise<Uint8Array> {
  const [row] = await hub.database.db.execute<{ is_packed: boolean; content: Uint8Array }>(sql`
    select o.is_packed, b.content from stored_objects o join stored_blocks b on b.object_id = o.id
    where o.id = ${objectId} and b.block = ${block}`)
  const opened = row ? hub.sealer.openBytes(row.content, placeOf(objectId, block)) : null
  if (!row || opened === null)
    throw new Error(`cannot read block ${block} of a stored object: it is gone or sealed anew`)
  return row.is_packed ? Bun.gunzipSync(Buffer.from(opened)) : opened
}

/** The bytes from one place to another, both within the object, as a stream that reads a block at a time. */
export function streamOf(hub: Hub, objectId: string, from: number, to: number): ReadableStream<Uint8Array> {
  let at = from
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (at > to) {
        controller.close()
        return
      }
      const block = Math.floor(at / BLOCK_BYTES)
      const bytes = await readBlock(hub, objectId, block)
      const begin = at - block * BLOCK_BYTES
      const part = bytes.subarray(begin, Math.min(bytes.byteLength, to - block * BLOCK_BYTES + 1))
      at += part.byteLength
      controller.enqueue(part)
    },
  })
}
