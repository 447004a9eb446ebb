// The listener thread of the product, on the clock of the test process: the first import sets Date.now before the
// second one runs.
import './follow-clock.ts'
import '../../apps/collector/ingest/listener/listener-thread.ts'
