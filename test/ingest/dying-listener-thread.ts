// A listener thread that dies of an agent version: what the main thread makes of it is tested with it.
import '../../apps/collector/ingest/listener/listener-thread.ts'
import { Directory } from '../../apps/collector/ingest/listener/agent-directory.ts'

const noteSeen = Directory.prototype.noteSeen
Directory.prototype.noteSeen = function (this: Directory, agent: number, atMs: number): void {
  noteSeen.call(this, agent, atMs)
  setTimeout(() => {
    throw new Error('out of order')
  })
}
