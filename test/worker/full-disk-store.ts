// What evaluation-store.test.ts runs on a file system of its own that is small (TMPDIR): the disk is full while shards
// are saved and events committed. Prints what there was to see, as one JSON object.
import { readdirSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { EvaluationStore } from '../../apps/collector/store/file-evaluation-store.ts'
import { isNoRoom } from '../../apps/files/data-directory.ts'
import type { RemovedServerRecord } from '../../core/alerting/durability/journal-record.ts'
import { fillDisk } from '../support/full-disk.ts'

const directory = process.env.TMPDIR!
const store = new EvaluationStore(directory, join(directory, 'snapshots'))
const text = 'x'.repeat(20_000)
const record = (key: string): RemovedServerRecord => ({
  ...{ kind: 'left', key, companyId: text, serverId: text, shard: 1, agentIds: [], leftAtMs: 0 },
})
const before = new Uint8Array(1000).fill(1)
const after = new Uint8Array(3 << 20).fill(2)
store.saveSnapshot(1, before, 1, 0)
store.commit([], [record('a')], 1, 0)

// Room for a part of a snapshot: a write that ends there says so only by its result.
const filler = join(directory, 'filler')
fillDisk(filler)
truncateSync(filler, Bun.file(filler).size - (1 << 20))
const refused: boolean[] = []
const refuse = async (work: () => unknown): Promise<void> => {
  try {
    await work()
    refused.push(false)
  } catch (error) {
    refused.push(isNoRoom(error))
  }
}
await refuse(() => store.saveSnapshot(1, after, 2, 1))
await refuse(() => store.writeSnapshot(1, after, 2, 1))
const snapshots = readdirSync(join(directory, 'snapshots'))
fillDisk(`${filler}2`)
const mark = store.journalMark
const many = Array.from({ length: 40 }, (_, index) => record(`b${index}`))
await refuse(() => store.commit([], many, 2, 0))
const full = {
  refused,
  snapshots,
  isOld: store.loadSnapshot(1)?.length === before.length,
  added: store.journalMark - mark,
}
for (const path of [filler, `${filler}2`]) rmSync(path)
store.commit([], many, 2, 0)
const { publish } = await store.writeSnapshot(1, after, 2, 1)
publish()
console.log(
  JSON.stringify({
    full,
    added: store.journalMark - mark,
    isNew: store.loadSnapshot(1)?.length === after.length,
    left: [...store.journalAfter(1, 2, mark)].length,
  }),
)
store.close()
