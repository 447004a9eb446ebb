// Imported first by a thread: its Date.now follows the offset of the process, in a small mapped file named after it.
import { clockFile } from './clock.ts'

const realNow = Date.now
const shared = new Float64Array(Bun.mmap(clockFile).buffer)
Date.now = () => realNow() + shared[0]!
