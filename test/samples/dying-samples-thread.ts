// A samples thread that dies of being told to release memory: what the main thread makes of it is tested with it.
import '../../apps/collector/worker/samples/samples-thread.ts'

addEventListener('message', ({ data }: MessageEvent<{ kind: string }>) => {
  if (data.kind === 'release') throw new Error('out of order')
})
