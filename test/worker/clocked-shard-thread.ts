// The shard thread of the product, on the clock of the test process: the first import moves Date.now before the second
// one runs.
import './follow-clock.ts'
import '../../apps/collector/worker/evaluation/shard-thread.ts'
