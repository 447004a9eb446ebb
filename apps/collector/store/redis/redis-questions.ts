// A worker asks the others about their shards: which agents are online, the alerting and the samples of a server, the
// counts of /status; and asks them to pull a feed. The question is published on a channel, and answers are pushed to a
// list of that question. Redis returns how many workers received the question: that many answers are awaited, up to a
// time limit.
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { isServerQuestion, type ServerQuestion } from '../../worker/samples/samples-messages.ts'
import { type ReloadFeed, reloadFeeds } from './redis-announcements.ts'
import { redisCause } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'

const WAIT_MS = 1_000
const POLL_MS = 15
const ANSWER_KEPT_S = 10

export type Question =
  | { readonly kind: 'alerting'; readonly serverId: string }
  | { readonly kind: 'online'; readonly companyId: string }
  | { readonly kind: 'counts' }
  /** The worker of the server answers. */
  | { readonly kind: 'samples'; readonly asked: ServerQuestion }
  /** Each worker answers of its own servers. */
  | { readonly kind: 'companyValues'; readonly companyId: string; readonly metric: string; readonly sinceMs: number }
  /** Pull the feed and put it in force before answering. */
  | { readonly kind: 'reload'; readonly feed: ReloadFeed }

type Asked = { readonly id: string; readonly owner: string; readonly question: Question }

function parseAsked(text: string): Asked | null {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || !('id' in value) || !('owner' in value) || !('question' in value))
    return null
  const { id, owner, question } = value
  if (typeof id !== 'string' || typeof owner !== 'string' || typeof question !== 'object' || question === null)
    return null
  if (!('kind' in question)) return null
  if (question.kind === 'alerting' && 'serverId' in question && typeof question.serverId === 'string')
    return { id, owner, question: { kind: 'alerting', serverId: question.serverId } }
  if (question.kind === 'online' && 'companyId' in question && typeof question.companyId === 'string')
    return { id, owner, question: { kind: 'online', companyId: question.companyId } }
  if (question.kind === 'reload' && 'feed' in question) {
    const feed = reloadFeeds.find(each => each === question.feed)
    return feed ? { id, owner, question: { kind: 'reload', feed } } : null
  }
  if (question.kind === 'samples' && 'asked' in question && isServerQuestion(question.asked))
    return { id, owner, question: { kind: 'samples', asked: question.asked } }
  if (question.kind === 'companyValues' && 'companyId' in question && 'metric' in question && 'sinceMs' in question) {
    const { companyId, metric, sinceMs } = question
    if (typeof companyId !== 'string' || typeof metric !== 'string' || typeof sinceMs !== 'number') return null
    return { id, owner, question: { kind: 'companyValues', companyId, metric, sinceMs } }
  }
  return question.kind === 'counts' ? { id, owner, question: { kind: 'counts' } } : null
}

export class RedisQuestions {
  private readonly listener: Redis
  private readonly renewListener = (): void => this.listener.disconnect(true)

  /** `answer` resolves to JSON, or to null when this worker has no answer. */
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly owner: string,
    private readonly answer: (question: Question) => Promise<unknown>,
    onError: (cause: string) => void,
  ) {
    this.listener = redis.duplicate({
      // The subscription waits for the connection, however long that takes.
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      connectionName: 'collector-worker-questions',
    })
    // The connection that it was duplicated from reports trouble, and notices a server that has gone without a word.
    this.listener.on('error', () => {})
    redis.on('close', this.renewListener)
    this.listener.subscribe(keys.questions).catch(error => onError(redisCause(error)))
    this.listener.on('message', (_channel: string, text: string) => {
      this.receive(text).catch(error => onError(redisCause(error)))
    })
  }

  /**
   * Every worker answers, even its own question, and with null when it knows nothing: so the one that asks knows when
   * no further answer will come.
   */
  private async receive(text: string): Promise<void> {
    const asked = parseAsked(text)
    if (!asked) return
    const answer = asked.owner === this.owner ? null : await this.answer(asked.question)
    const list = this.keys.answers(asked.id)
    await this.redis.multi().rpush(list, JSON.stringify(answer)).expire(list, ANSWER_KEPT_S).exec()
  }

  /**
   * Asks the other workers. Resolves to their answers: `enough` of them, or those that came within `waitMs`. Workers
   * that have gone are not waited for.
   */
  async ask(question: Question, enough: 'first' | 'all', waitMs = WAIT_MS): Promise<unknown[]> {
    const asked: Asked = { id: randomUUID(), owner: this.owner, question }
    const hearers = await this.redis.publish(this.keys.questions, JSON.stringify(asked))
    const list = this.keys.answers(asked.id)
    const endsAt = performance.now() + waitMs
    for (;;) {
      const texts = await this.redis.lrange(list, 0, -1)
      const answers = texts.map((text): unknown => JSON.parse(text)).filter(answer => answer !== null)
      const isEnough = enough === 'first' && answers.length > 0
      if (isEnough || texts.length >= hearers || performance.now() > endsAt) return answers
      await Bun.sleep(POLL_MS)
    }
  }

  close(): void {
    this.redis.off('close', this.renewListener)
    this.listener.disconnect()
  }
}
