// A store of the evaluation on a disk that has no room while the test says so.
import type { WrittenSnapshot } from '../../apps/collector/store/shard-store.ts'
import { MemoryStore } from './durable.ts'

export class FullStore extends MemoryStore {
  /** What finds no room now. */
  isFull: (what: 'commit' | 'rules' | 'keys' | 'snapshot' | 'journal') => boolean = () => false

  private room(what: Parameters<FullStore['isFull']>[0], code: string): void {
    if (this.isFull(what)) throw Object.assign(new Error('there is no room'), { code })
  }

  override commit(...args: Parameters<MemoryStore['commit']>): void {
    this.room('commit', 'SQLITE_FULL')
    super.commit(...args)
  }

  override keepRules(...args: Parameters<MemoryStore['keepRules']>): void {
    this.room('rules', 'SQLITE_FULL')
    super.keepRules(...args)
  }

  override keepKeys(...args: Parameters<MemoryStore['keepKeys']>): void {
    this.room('keys', 'SQLITE_FULL')
    super.keepKeys(...args)
  }

  override dropKeys(...args: Parameters<MemoryStore['dropKeys']>): void {
    this.room('keys', 'SQLITE_FULL')
    super.dropKeys(...args)
  }

  override passRules(...args: Parameters<MemoryStore['passRules']>): void {
    this.room('journal', 'SQLITE_FULL')
    super.passRules(...args)
  }

  override saveSnapshot(...args: Parameters<MemoryStore['saveSnapshot']>): void {
    this.room('snapshot', 'ENOSPC')
    super.saveSnapshot(...args)
  }

  async writeSnapshot(...args: Parameters<MemoryStore['saveSnapshot']>): Promise<WrittenSnapshot> {
    this.room('snapshot', 'EDQUOT')
    return { publish: () => super.saveSnapshot(...args), discard: () => {} }
  }
}
