// What the main thread of ingest and its listener threads say to each other. The main thread has registry, hub and
// everything rare; listener threads have the connections, and decode and admit batches.

import type { IngestConfig } from '../../config.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { HotCounters } from '../../telemetry.ts'
import type { AuthFailure } from '../agents/authenticate.ts'
import type { DirectoryBuffers } from './agent-directory.ts'

/** An agent that was let in. `agentIndex` and `company`: in the directory. */
export type KnownAgent = {
  readonly agentIndex: number
  readonly company: number
  readonly record: AgentRecord
  readonly etag: string
}

/** What became of an agent; record null: it is gone or revoked. Its ETag must be asked for again. */
export type AgentUpdate = { readonly agentIndex: number; readonly company: number; readonly record: AgentRecord | null }

/** A request for the main thread, its body read. */
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

/** Counted since the last time. */
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
  /** As the first thread got it; that one gets the one of the configuration. */
  readonly port: number | null
}

/** Questions of the main thread; `call` is answered with the same number. */
export type ToListener =
  | ListenerStart
  /** RegistryUpdate in their order; `number` is the directory's count of them. */
  | {
      readonly kind: 'update'
      readonly number: number
      readonly agents: readonly AgentUpdate[]
      readonly isEveryEtagStale: boolean
    }
  | { readonly kind: 'known'; readonly call: number; readonly found: KnownAgent | AuthFailure }
  | { readonly kind: 'etag'; readonly call: number; readonly etag: string | null }
  | { readonly kind: 'response'; readonly call: number; readonly response: ForwardedResponse }
  | { readonly kind: 'count'; readonly call: number }
  | { readonly kind: 'reload_certificate'; readonly call: number }
  | { readonly kind: 'stop'; readonly call: number }

export type FromListener =
  | { readonly kind: 'listening'; readonly url: string; readonly port: number }
  | { readonly kind: 'cannot_listen'; readonly reason: string }
  | { readonly kind: 'who'; readonly call: number; readonly tokenHash: string | null }
  | { readonly kind: 'which_etag'; readonly call: number; readonly agentIndex: number }
  | { readonly kind: 'request'; readonly call: number; readonly request: ForwardedRequest }
  | {
      readonly kind: 'version'
      readonly agentIndex: number
      readonly agentVersion: string
      readonly protoVersion: number
    }
  /** Lines of the log, each with its end. */
  | { readonly kind: 'log'; readonly lines: readonly string[] }
  | { readonly kind: 'counted'; readonly call: number; readonly counters: ThreadCounters }
  /** `fault` null: done. */
  | { readonly kind: 'done'; readonly call: number; readonly fault: string | null }
