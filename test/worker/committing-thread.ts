// A thread that commits events one after the other without a pause, as a replay does, and counts the commits.
import { EvaluationStore } from '../../apps/collector/store/file-evaluation-store.ts'
import { alertEvent } from '../support/alert-event.ts'

declare const self: Worker
/** So many that the lock is held for milliseconds, whatever the disk, and free for microseconds. */
const events = Array.from({ length: 2000 }, (_, index) => alertEvent(index + 1))

export type CommittingThread = {
  readonly directory: string
  readonly turns: SharedArrayBuffer
  /** How many commits were begun, and whether to end. */
  readonly counts: SharedArrayBuffer
}

self.onmessage = ({ data }: MessageEvent<CommittingThread>) => {
  const counts = new Int32Array(data.counts)
  const store = new EvaluationStore(data.directory, data.directory, data.turns)
  while (Atomics.load(counts, 1) === 0) {
    Atomics.add(counts, 0, 1)
    store.commit(events, [], 1, 1)
  }
  store.close()
  postMessage('ended')
}
