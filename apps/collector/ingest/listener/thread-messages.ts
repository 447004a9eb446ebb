// Messages between the main thread of ingest and its listener threads. The main thread has the registry, the hub and
// the control endpoints; listener threads have the connections, and decode and admit batches.

import type { IngestConfig } from '../../config.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { HotCounters } from '../../telemetry.ts'
import type { AnswerMessage, CallMessage } from '../../thread-calls.ts'
import type { AuthFailure } from '../agents/authenticate.ts'
import type { DirectoryBuffers } from './agent-directory.ts'

/** An authenticated agent. `agentIndex` and `company` are indexes in the directory. */
export type KnownAgent = {
  readonly agentIndex: number
  readonly company: number
  readonly record: AgentRecord
  readonly etag: string
}

/** A change of an agent; `record` is null when it was removed or revoked. Its ETag must be requested again. */
export type AgentUpdate = { readonly agentIndex: number; readonly company: number; readonly record: AgentRecord | null }

/** A forwarded request, with its body. */
export type ForwardedRequest = {
  readonly url: string
  readonly method: string
  readonly headers: readonly [string, string][]
  readonly body: Uint8Array<ArrayBuffer> | null
  readonly peer: string
}

export type ForwardedResponse = {
  readonly status: number
  readonly headers: readonly [string, string][]
  readonly body: Uint8Array<ArrayBuffer>
}

/** What a thread counted since the last call. */
export type ThreadCounters = {
  readonly hot: HotCounters
  readonly requests: { readonly counts: Float64Array; readonly sum: number }
  readonly decodes: { readonly counts: Float64Array; readonly sum: number }
}

export type ListenerStart = {
  readonly kind: 'start'
  readonly thread: number
  readonly config: IngestConfig
  readonly logLevel: string
  readonly service: string
  readonly bus: MessagePort
  readonly peers: readonly (MessagePort | null)[]
  readonly directory: DirectoryBuffers
  /** The port that the first thread got; null for the first thread, which takes that of the configuration. */
  readonly port: number | null
}

/** What the main thread asks of a listener thread. */
export type ListenerCalls = {
  /** What was counted since the last call. */
  count: { args: []; result: ThreadCounters }
  reloadCertificate: { args: []; result: null }
  /** No new requests. Answered when those under way are. */
  stop: { args: []; result: null }
}

/** What a listener thread asks of the main thread. */
export type MainCalls = {
  /** Whose a token is; null: the request carries none. */
  identify: { args: [tokenHash: string | null]; result: KnownAgent | AuthFailure }
  /** The ETag of an agent's config; null when there is no such agent any more. */
  etagAt: { args: [agentIndex: number]; result: string | null }
  forward: { args: [request: ForwardedRequest]; result: ForwardedResponse }
}

/** Updates of the registry in their order; `number` is the directory's count of them. */
export type RegistryUpdate = {
  readonly kind: 'update'
  readonly number: number
  readonly agents: readonly AgentUpdate[]
  readonly isEveryEtagStale: boolean
}

export type ToListener = ListenerStart | RegistryUpdate | CallMessage<ListenerCalls> | AnswerMessage

export type FromListener =
  | { readonly kind: 'listening'; readonly url: string; readonly port: number }
  | { readonly kind: 'cannot_listen'; readonly reason: string }
  | {
      readonly kind: 'version'
      readonly agentIndex: number
      readonly agentVersion: string
      readonly protoVersion: number
    }
  /** The last warning of an agent, and when it was noted. */
  | { readonly kind: 'warning'; readonly agentIndex: number; readonly text: string; readonly atMs: number }
  /** Log lines, each with its newline. */
  | { readonly kind: 'log'; readonly lines: readonly string[] }
  | CallMessage<MainCalls>
  | AnswerMessage
