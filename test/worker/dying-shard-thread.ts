// A shard thread that dies of the first silences it is given: what the main thread makes of it is tested with it.
import '../../apps/collector/worker/evaluation/shard-thread.ts'
import { ShardHost } from '../../apps/collector/worker/evaluation/shard-host.ts'

ShardHost.prototype.setSilences = () => {
  throw new Error('out of order')
}
