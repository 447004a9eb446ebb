// The samples of all workers of a collector, for whoever asks one of them. Each holds the newest samples of the
// servers of its own shards, which the store does not have yet: so the worker of a server answers what is asked of
// that server. One that does not answer is dead, or its shards are on their way: the store then answers without the
// newest minutes.
import type { OtherWorkers } from '../storage/worker-storage.ts'
import type { CompanyValues } from './latest-values.ts'
import type { SamplesClient } from './samples-client.ts'
import type { SamplesCalls, ServerCall, ServerQuestion } from './samples-messages.ts'

type QueriedSamples = Pick<SamplesClient, ServerCall | 'companyValues'>

/** Answers a call of another worker. */
export function answerServerQuestion(samples: QueriedSamples, question: ServerQuestion): Promise<unknown> {
  switch (question.call) {
    case 'querySeries':
      return samples.querySeries(...question.args)
    case 'queryMetrics':
      return samples.queryMetrics(...question.args)
    case 'seriesKeys':
      return samples.seriesKeys(...question.args)
    case 'latestValues':
      return samples.latestValues(...question.args)
  }
}

type Result<C extends ServerCall> = SamplesCalls[C]['result']

const isSeries = (value: unknown): value is Result<'querySeries'> =>
  typeof value === 'object' && value !== null && 'series' in value && Array.isArray(value.series)
const isMetrics = (value: unknown): value is Result<'queryMetrics'> =>
  isSeries(value) && 'leftOut' in value && Array.isArray(value.leftOut)
const isKeys = (value: unknown): value is Result<'seriesKeys'> => Array.isArray(value)
const isLatest = (value: unknown): value is Result<'latestValues'> => Array.isArray(value)

/** Parts of a company side by side; of a server in several of them the first part counts. */
function joined(parts: readonly CompanyValues[]): CompanyValues {
  const partOf = new Map<string, readonly [part: CompanyValues, at: number]>()
  for (const part of parts)
    for (const [at, serverId] of part.serverIds.entries()) if (!partOf.has(serverId)) partOf.set(serverId, [part, at])
  const places = [...partOf.values()]
  return {
    serverIds: [...partOf.keys()],
    values: places.map(([part, at]) => part.values[at]!),
    tsMs: places.map(([part, at]) => part.tsMs[at]!),
    labels: places.map(([part, at]) => part.labels[at]!),
    truncated: parts.some(part => part.truncated),
  }
}

export function samplesOfAll(samples: QueriedSamples, others: OtherWorkers | null, shardCount: number): QueriedSamples {
  if (!others) return samples
  const ask = async <T>(
    question: ServerQuestion,
    isResult: (value: unknown) => value is T,
    own: () => Promise<T>,
  ): Promise<T> => {
    if (others.isOwn(question.serverId)) return own()
    const result = await others.samples(question).catch(() => null)
    return isResult(result) ? result : own()
  }
  return {
    querySeries: (...args) =>
      ask({ call: 'querySeries', serverId: args[0].serverId, args }, isSeries, () => samples.querySeries(...args)),
    queryMetrics: (...args) =>
      ask({ call: 'queryMetrics', serverId: args[0].serverId, args }, isMetrics, () => samples.queryMetrics(...args)),
    seriesKeys: (...args) =>
      ask({ call: 'seriesKeys', serverId: args[1], args }, isKeys, () => samples.seriesKeys(...args)),
    latestValues: (...args) =>
      ask({ call: 'latestValues', serverId: args[1], args }, isLatest, () => samples.latestValues(...args)),
    companyValues: async (companyId, metric, sinceMs) => {
      const [own, parts] = await Promise.all([
        samples.companyValues(companyId, metric, sinceMs, true),
        others.companyValues(companyId, metric, sinceMs).catch(() => []),
      ])
      const covered = parts.reduce((sum, { shards }) => sum + shards, others.ownShards())
      const known = [own, ...parts.map(({ values }) => values)]
      // Shards of nobody, or of one that did not answer: the store has their servers.
      return joined(
        covered >= shardCount ? known : [...known, await samples.companyValues(companyId, metric, sinceMs, false)],
      )
    },
  }
}
