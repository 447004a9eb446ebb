// Imported first by a thread: its Date.now is the instant that the tests of the process have set.
import { clockFile } from './clock.ts'

const realNow = Date.now
const instant = new Float64Array(Bun.mmap(clockFile).buffer)
Date.now = () => (instant[0]! > 0 ? instant[0]! : realNow())
